import { expect, it } from 'vitest';
import { createWorkersAiEngine, WORKERS_AI_MODEL } from './workers-ai-engine.ts';

const SAMPLES = new Uint8Array(2 * 16_000 * 2).map((_, i) => i % 251);
const answering = (answer: () => unknown, timeoutMs?: number) => {
  const calls: [string, Record<string, unknown>][] = [];
  const run = async (model: string, input: Record<string, unknown>) => {
    calls.push([model, input]);
    return answer();
  };
  return { calls, engine: createWorkersAiEngine({ run }, { timeoutMs }) };
};

it('sends a WAV file as base64 and reads the words of the segments', async () => {
  const { calls, engine } = answering(() => ({
    text: 'Hi there.',
    segments: [{ start: 0, end: 1, text: ' Hi there.', words: [{ word: ' Hi', start: 0, end: 0.4 }] }],
  }));
  expect(await engine.transcribe(SAMPLES, { language: 'en' })).toEqual({
    ok: true,
    value: {
      text: 'Hi there.',
      segments: [{ startSeconds: 0, endSeconds: 1, text: ' Hi there.' }],
      words: [{ startSeconds: 0, endSeconds: 0.4, text: ' Hi' }],
    },
  });
  const [[model, input]] = calls;
  expect([model, input.task, input.language]).toEqual([WORKERS_AI_MODEL, 'transcribe', 'en']);
  const file = Buffer.from(String(input.audio), 'base64');
  expect([file.length, file.toString('latin1', 0, 4)]).toEqual([44 + SAMPLES.length, 'RIFF']);
  expect(new Uint8Array(file.subarray(44))).toEqual(SAMPLES);
});

it.each([
  ['InferenceUpstreamError: 3040: Capacity temporarily exceeded, please try again.', 'busy'],
  ['AiError: 3036: You have used up your daily free allocation of 10,000 neurons', 'busy'],
  ['AiError: 5006: Error: required properties at / are audio', 'refused'],
  ['InferenceUpstreamError: 3007: upstream timed out', 'unavailable'],
] as const)('reports %s as %s', async (message, kind) => {
  const { engine } = answering(() => {
    throw new Error(message);
  });
  expect(await engine.transcribe(SAMPLES, {})).toMatchObject({ ok: false, error: { kind } });
});

it('reports other answers as nonsense, and a missing answer as unavailable', async () => {
  expect(await answering(() => ({ vtt: '' })).engine.transcribe(SAMPLES, {})).toMatchObject({
    error: { kind: 'nonsense' },
  });
  const never = answering(() => new Promise(() => undefined), 50);
  expect(await never.engine.transcribe(SAMPLES, {})).toMatchObject({ error: { kind: 'unavailable' } });
});
