import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { sendJson, startEngine, wordsOf } from '../../test/helpers/asr-engine.ts';

let server: Awaited<ReturnType<typeof startEngine>>;
beforeAll(async () => {
  server = await startEngine();
});
afterAll(() => server.close());
beforeEach(() => {
  server.behaviours.length = 0;
  server.heard.length = 0;
});

const TWO_SECONDS = new Uint8Array(2 * 2 * 16_000);
const transcribe = (options: { language?: string; signal?: AbortSignal; timeoutMs?: number } = {}) =>
  server.engine({ timeoutMs: options.timeoutMs }).transcribe(TWO_SECONDS, options);

it('sends a WAV file and requests word times, with the language if it is known', async () => {
  const answer = await transcribe({ language: 'de' });
  expect(server.heard).toEqual([
    {
      seconds: 2,
      authorization: 'Bearer secret',
      fields: {
        model: ['tiny'],
        response_format: ['verbose_json'],
        'timestamp_granularities[]': ['word', 'segment'],
        temperature: ['0'],
        language: ['de'],
      },
    },
  ]);
  expect(answer).toMatchObject({ ok: true, value: { text: 'w0 w1 w2 w3.' } });
  const words = wordsOf(2).map(({ word, start, end }) => ({ text: word, startSeconds: start, endSeconds: end }));
  expect(answer.ok && answer.value.words).toEqual(words);
});

it.each([
  ['the text alone', { text: 'a b' }, { text: 'a b', segments: [], words: [] }],
  ['null for unknown members', { text: 'a', segments: null, words: null }, { segments: [], words: [] }],
  ['segments of another shape', { text: 'a', segments: ['a'], words: [{ word: 3 }] }, { segments: [], words: [] }],
  [
    'words under `text`',
    { text: 'a', words: [{ text: 'a', start: 0, end: 1 }] },
    { words: [{ text: 'a', startSeconds: 0, endSeconds: 1 }] },
  ],
])('accepts an answer with %s', async (_, body, expected) => {
  server.behaviours.push((response) => sendJson(response, body));
  expect(await transcribe()).toMatchObject({ ok: true, value: expected });
});

it.each([
  [429, 'busy'],
  [503, 'busy'],
  [500, 'unavailable'],
  [502, 'unavailable'],
  [408, 'unavailable'],
  [400, 'refused'],
  [401, 'refused'],
  [404, 'refused'],
  [413, 'refused'],
] as const)('reports status %i as %s', async (status, kind) => {
  server.behaviours.push((response) => sendJson(response, { error: { message: 'why' } }, status));
  expect(await transcribe()).toMatchObject({ ok: false, error: { kind, message: expect.stringContaining('why') } });
});

it.each([
  ['7', 7],
  ['100000', 600],
  ['soon', undefined],
  ['-3', undefined],
])('reads Retry-After up to ten minutes: %s', async (header, seconds) => {
  server.behaviours.push((response) => {
    response.writeHead(429, { 'retry-after': header });
    response.end();
  });
  const answer = await transcribe();
  expect(answer.ok || (answer.error.kind === 'busy' && answer.error.retryAfterSeconds)).toBe(seconds);
});

it.each([
  ['a text without JSON', '<html>'],
  ['another object', '{"words":[]}'],
  ['a list', '[]'],
])('reports %s as nonsense', async (_, body) => {
  server.behaviours.push((response) => sendJson(response, body));
  expect(await transcribe()).toMatchObject({ ok: false, error: { kind: 'nonsense' } });
});

it('sends the audio to no other address than that of the engine', async () => {
  server.behaviours.push((response) => {
    response.writeHead(307, { location: `${server.url}/audio/transcriptions` });
    response.end();
  });
  expect(await transcribe()).toMatchObject({ ok: false, error: { kind: 'refused' } });
  expect(server.heard.length).toBe(1);
});

it('reports an engine that does not answer, breaks off or sends too much as unavailable', async () => {
  const unavailable = { ok: false, error: { kind: 'unavailable' } };
  server.behaviours.push(() => undefined);
  expect(await transcribe({ timeoutMs: 200 })).toMatchObject({
    ...unavailable,
    error: { message: 'no answer within 0.2 s' },
  });
  server.behaviours.push((response) => response.destroy());
  expect(await transcribe()).toMatchObject(unavailable);
  server.behaviours.push((response) => {
    response.writeHead(200);
    for (let i = 0; i < 100; i++) response.write('x'.repeat(1 << 17));
  });
  expect(await transcribe()).toMatchObject({ ...unavailable, error: { message: expect.stringMatching(/more than/) } });
  const gone = await startEngine();
  await gone.close();
  expect(await gone.engine().transcribe(TWO_SECONDS, {})).toMatchObject(unavailable);
});

it('cancels the request when its signal is aborted', async () => {
  const controller = new AbortController();
  server.behaviours.push(() => controller.abort());
  expect(await transcribe({ signal: controller.signal })).toMatchObject({ ok: false, error: { kind: 'unavailable' } });
});
