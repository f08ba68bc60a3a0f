import { z } from 'zod';
import type { EngineFault, TranscriptionEngine } from '../jobs/job-ports.ts';
import { wavOf } from './openai-engine.ts';

/** The part of the platform's `AI` binding that is used here. */
export interface AiBinding {
  run(model: string, input: Record<string, unknown>): Promise<unknown>;
}

export const WORKERS_AI_MODEL = '@cf/openai/whisper-large-v3-turbo';
/** The window of Whisper. */
const MAX_PIECE_SECONDS = 30;
const CONCURRENCY = 4;
const TIMEOUT_MS = 120_000;
/** A multiple of three, so that the encoded blocks can be concatenated. */
const BASE64_BYTES = 3 * 8192;

const timed = { start: z.number(), end: z.number() };
const answerSchema = z.object({
  text: z.string(),
  segments: z
    .array(z.object({ ...timed, text: z.string(), words: z.array(z.object({ ...timed, word: z.string() })).nullish() }))
    .nullish()
    .catch(undefined),
});

/** Transcription by Workers AI, in the account of the deployment. */
export function createWorkersAiEngine(ai: AiBinding, { timeoutMs: limitMs = TIMEOUT_MS } = {}): TranscriptionEngine {
  return {
    maxPieceSeconds: MAX_PIECE_SECONDS,
    concurrency: CONCURRENCY,

    async transcribe(samples, { language, timeoutMs = limitMs }) {
      const input = { audio: base64(wavOf(samples)), task: 'transcribe', ...(language !== undefined && { language }) };
      let answer: unknown;
      try {
        answer = await within(ai.run(WORKERS_AI_MODEL, input), timeoutMs);
      } catch (error) {
        return { ok: false, error: faultOf(String(error)) };
      }
      const parsed = answerSchema.safeParse(answer);
      if (!parsed.success) return { ok: false, error: { kind: 'nonsense', message: z.prettifyError(parsed.error) } };
      const segments = parsed.data.segments ?? [];
      return {
        ok: true,
        value: {
          text: parsed.data.text,
          segments: segments.map(({ start, end, text }) => ({ startSeconds: start, endSeconds: end, text })),
          words: segments.flatMap(({ words }) =>
            (words ?? []).map(({ start, end, word }) => ({ startSeconds: start, endSeconds: end, text: word })),
          ),
        },
      };
    },
  };
}

/** Errors of the binding contain a code: 3040 is out of capacity, 3036 the daily limit of the account. */
function faultOf(message: string): EngineFault {
  if (/\b(3040|3036|429)\b|capacity|rate limit/i.test(message)) return { kind: 'busy', message };
  if (/\b(3003|3006|3010|5004|5006)\b|invalid|bad input/i.test(message)) return { kind: 'refused', message };
  return { kind: 'unavailable', message };
}

function within<T>(answer: Promise<T>, timeoutMs: number): Promise<T> {
  const timeout = AbortSignal.timeout(timeoutMs);
  const late = new Promise<never>((_, giveUp) => {
    timeout.addEventListener('abort', () => giveUp(new Error(`no answer within ${timeoutMs / 1000} s`)));
  });
  return Promise.race([answer, late]);
}

function base64(bytes: Uint8Array): string {
  const blocks: string[] = [];
  for (let at = 0; at < bytes.length; at += BASE64_BYTES) {
    blocks.push(btoa(String.fromCharCode(...bytes.subarray(at, at + BASE64_BYTES))));
  }
  return blocks.join('');
}
