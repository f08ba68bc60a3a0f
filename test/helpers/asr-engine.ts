import type { IncomingMessage, ServerResponse } from 'node:http';
import { createOpenAiEngine } from '../../src/platform/openai-engine.ts';
import { startServer } from './http-server.ts';

/** A request that the engine received. */
export interface HeardAudio {
  readonly seconds: number;
  readonly fields: Readonly<Record<string, string[]>>;
  readonly authorization: string | undefined;
}

type Behaviour = (response: ServerResponse, heard: HeardAudio) => void;

const SAMPLE_RATE_HZ = 16_000;
const WAV_HEADER_BYTES = 44;
/** Interval of the words in the engine's answers. */
const WORD_SECONDS = 0.5;

/** A word every half second, numbered, every fourth with a full stop. */
export function wordsOf(seconds: number): { word: string; start: number; end: number }[] {
  return Array.from({ length: Math.floor(seconds / WORD_SECONDS) }, (_, i) => ({
    word: i % 4 === 3 ? `w${i}.` : `w${i}`,
    start: i * WORD_SECONDS,
    end: i * WORD_SECONDS + 0.4,
  }));
}

export const sendJson = (response: ServerResponse, body: unknown, status = 200): void => {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(typeof body === 'string' ? body : JSON.stringify(body));
};

/** A complete answer without errors. */
export const answerWell: Behaviour = (response, { seconds }) => {
  const words = wordsOf(seconds);
  const text = words.map(({ word }) => word).join(' ');
  sendJson(response, { text, language: 'en', duration: seconds, segments: [{ start: 0, end: seconds, text }], words });
};

/**
 * A transcription engine with OpenAI's API on loopback. Each request uses up one of `behaviours`; later requests get
 * complete answers.
 */
export async function startEngine() {
  const behaviours: Behaviour[] = [];
  const heard: HeardAudio[] = [];
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const form = await new Response(Buffer.concat(chunks), {
      headers: { 'content-type': request.headers['content-type'] ?? '' },
    }).formData();
    const file = form.get('file') as File;
    const fields: Record<string, string[]> = {};
    for (const name of new Set([...form.keys()])) {
      if (name !== 'file') fields[name] = form.getAll(name).map(String);
    }
    const audio: HeardAudio = {
      seconds: (file.size - WAV_HEADER_BYTES) / 2 / SAMPLE_RATE_HZ,
      fields,
      authorization: request.headers.authorization,
    };
    heard.push(audio);
    (behaviours.shift() ?? answerWell)(response, audio);
  };
  const server = await startServer((request, response) => void answer(request, response));
  const url = `${server.origin}/v1`;
  return {
    url,
    behaviours,
    heard,
    engine: (options: { timeoutMs?: number } = {}) =>
      createOpenAiEngine({ url, model: 'tiny', key: 'secret' }, options),
    close: server.close,
  };
}
