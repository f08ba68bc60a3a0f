import { z } from 'zod';
import type { EngineFault, TranscriptionEngine } from '../jobs/job-ports.ts';
import type { EngineAnswer, TimedText } from '../transcription/spans.ts';

/** An engine that implements OpenAI's `POST {base}/audio/transcriptions`. */
export interface OpenAiEngine {
  /** Base URL as in OpenAI's SDKs, with `/v1`. */
  readonly url: string;
  /** The engine's name for its model. */
  readonly model: string;
  readonly key?: string;
}

/** 2 MB of 16-bit audio; OpenAI's limit is 25 MB. Four pieces with their requests take some 25 MB of an isolate. */
const MAX_PIECE_SECONDS = 60;
const CONCURRENCY = 4;
/** A slow machine may need twice the duration of the four minutes of audio that are sent in parallel. */
const TIMEOUT_MS = 600_000;
const MAX_ANSWER_BYTES = 4 * 1024 * 1024;
const MAX_RETRY_AFTER_SECONDS = 600;

const timed = z.object({ start: z.number(), end: z.number() });
/** Fields of `verbose_json`; engines without support for it answer with the text only. */
const answerSchema = z.object({
  text: z.string(),
  segments: z
    .array(timed.extend({ text: z.string() }))
    .nullish()
    .catch(undefined),
  words: z
    .array(z.union([timed.extend({ word: z.string() }), timed.extend({ text: z.string() })]))
    .nullish()
    .catch(undefined),
});

/**
 * Transcription by an engine with OpenAI's API: OpenAI, Groq, vLLM, speaches, LocalAI, `containers/asr` and others.
 */
export function createOpenAiEngine(
  engine: OpenAiEngine,
  { fetch: send = (url: string, init: RequestInit) => fetch(url, init), timeoutMs: limitMs = TIMEOUT_MS } = {},
): TranscriptionEngine {
  return {
    maxPieceSeconds: MAX_PIECE_SECONDS,
    concurrency: CONCURRENCY,

    async transcribe(samples, { language, signal, timeoutMs = limitMs }) {
      const timeout = AbortSignal.timeout(timeoutMs);
      try {
        const response = await send(`${engine.url.replace(/\/+$/, '')}/audio/transcriptions`, {
          method: 'POST',
          headers: engine.key === undefined ? {} : { Authorization: `Bearer ${engine.key}` },
          body: formOf(engine.model, samples, language),
          // The audio goes to no other address than the operator's.
          redirect: 'manual',
          signal: signal === undefined ? timeout : AbortSignal.any([signal, timeout]),
        });
        const text = await readText(response);
        if (!response.ok) return { ok: false, error: faultOf(response, text) };
        return parseAnswer(text);
      } catch (error) {
        const message = timeout.aborted ? `no answer within ${timeoutMs / 1000} s` : String(error);
        return { ok: false, error: { kind: 'unavailable', message } };
      }
    },
  };
}

function formOf(model: string, samples: Uint8Array, language: string | undefined): FormData {
  const form = new FormData();
  form.set('file', new File([wavOf(samples)], 'audio.wav', { type: 'audio/wav' }));
  form.set('model', model);
  form.set('response_format', 'verbose_json');
  form.append('timestamp_granularities[]', 'word');
  form.append('timestamp_granularities[]', 'segment');
  // Reduces hallucinations and makes the answer reproducible.
  form.set('temperature', '0');
  if (language !== undefined) form.set('language', language);
  return form;
}

/** @throws Error if the answer is too large */
async function readText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    if (bytes > MAX_ANSWER_BYTES) throw new Error(`the answer has more than ${MAX_ANSWER_BYTES} bytes`);
    chunks.push(chunk);
  }
  const decoder = new TextDecoder();
  return chunks.map((chunk) => decoder.decode(chunk, { stream: true })).join('') + decoder.decode();
}

function faultOf(response: Response, text: string): EngineFault {
  const message = `${response.status} ${text.slice(0, 200)}`;
  if (response.status === 429 || response.status === 503) {
    const retryAfter = Number(response.headers.get('Retry-After') ?? Number.NaN);
    const retryAfterSeconds = retryAfter >= 0 ? Math.min(retryAfter, MAX_RETRY_AFTER_SECONDS) : undefined;
    return { kind: 'busy', message, retryAfterSeconds };
  }
  return { kind: response.status >= 500 || response.status === 408 ? 'unavailable' : 'refused', message };
}

function parseAnswer(text: string): { ok: true; value: EngineAnswer } | { ok: false; error: EngineFault } {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    return { ok: false, error: { kind: 'nonsense', message: `no JSON: ${text.slice(0, 200)}` } };
  }
  const parsed = answerSchema.safeParse(json);
  if (!parsed.success) return { ok: false, error: { kind: 'nonsense', message: z.prettifyError(parsed.error) } };
  const { text: transcript, segments, words } = parsed.data;
  return {
    ok: true,
    value: {
      text: transcript,
      segments: (segments ?? []).map((segment) => timedText(segment, segment.text)),
      words: (words ?? []).map((word) => timedText(word, 'word' in word ? word.word : word.text)),
    },
  };
}

function timedText({ start, end }: { start: number; end: number }, text: string): TimedText {
  return { startSeconds: start, endSeconds: end, text };
}

const SAMPLE_RATE_HZ = 16_000;
const HEADER_BYTES = 44;

/** A WAV file of 16-bit samples, little-endian, mono, 16 kHz. */
export function wavOf(samples: Uint8Array): Uint8Array<ArrayBuffer> {
  const file = new Uint8Array(HEADER_BYTES + samples.length);
  const view = new DataView(file.buffer);
  const put = (offset: number, text: string) => file.set(new TextEncoder().encode(text), offset);
  put(0, 'RIFF');
  view.setUint32(4, file.length - 8, true);
  put(8, 'WAVEfmt ');
  view.setUint32(16, 16, true);
  view.setUint16(20, 1, true); // PCM
  view.setUint16(22, 1, true);
  view.setUint32(24, SAMPLE_RATE_HZ, true);
  view.setUint32(28, SAMPLE_RATE_HZ * 2, true);
  view.setUint16(32, 2, true);
  view.setUint16(34, 16, true);
  put(36, 'data');
  view.setUint32(40, samples.length, true);
  file.set(samples, HEADER_BYTES);
  return file;
}
