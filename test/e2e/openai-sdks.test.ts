import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ContractService, startContractService } from '../contract/service.ts';
import { sendJson, startEngine } from '../helpers/asr-engine.ts';
import { conversation, root } from '../helpers/local-process.ts';
import { folderWith } from '../helpers/node-packages.ts';
import { pythonWith, runPython } from '../helpers/python.ts';
import { voiceSample } from '../helpers/voices.ts';

const folder = folderWith(['openai@7.59.0']);
const bin = pythonWith(['openai==3.57.0']);

/** Answer of an engine that refuses the audio. */
const refuseAudio = (response: ServerResponse) => sendJson(response, { error: 'no audio' }, 400);

type Call = readonly [method: string, args: Readonly<Record<string, unknown>>];
interface SdkResult {
  // biome-ignore lint/suspicious/noExplicitAny: results of every shape
  readonly results: any[];
  readonly error?: { name: string; code: string | null; param: string | null; message: string };
}

const script = (name: string) => join(root, 'test/e2e/clients', name);
const sdks: [name: string, isInstalled: boolean, command: string, args: string[]][] = [
  ['Node', folder !== undefined, process.execPath, [script('openai-sdk.mjs')]],
  ['Python', bin !== undefined, join(bin ?? '', 'python'), [script('openai_sdk.py')]],
];

let temporary: string;
let engine: Awaited<ReturnType<typeof startEngine>>;
let service: ContractService;
beforeAll(async () => {
  temporary = mkdtempSync(join(tmpdir(), 'rollcall-openai-'));
  engine = await startEngine();
  service = await startContractService({ ROLLCALL_ASR_URL: engine.url });
});
afterAll(async () => {
  await service?.stop();
  await engine?.close();
  rmSync(temporary, { recursive: true, force: true });
});

describe.each(sdks)("OpenAI's SDK for %s, unchanged, with another base address", (_, isInstalled, command, args) => {
  async function sdk(calls: readonly Call[], key = service.main.token): Promise<SdkResult> {
    const env = { ROLLCALL_URL: service.url, ROLLCALL_KEY: key, OPENAI_FOLDER: folder ?? '' };
    // A reference exceeds the length limit of an argument.
    const path = join(temporary, 'calls.json');
    writeFileSync(path, JSON.stringify(calls));
    const { stdout, stderr } = await runPython(command, [...args, path], { env });
    expect(stdout, stderr).not.toBe('');
    return JSON.parse(stdout) as SdkResult;
  }
  const transcribe = (options: object): Call => ['transcribe', { file: conversation, model: 'whisper-1', ...options }];
  const DIARIZE = { model: 'gpt-4o-transcribe-diarize', response_format: 'diarized_json', chunking_strategy: 'auto' };
  const TEXT = /^w\d+\.?( w\d+\.?)+\n?$/;

  it.skipIf(!isInstalled)('lists models', async () => {
    const { results } = await sdk([['models', {}]]);
    expect(results[0]).toEqual(expect.arrayContaining(['precision-2', 'whisper-1', 'gpt-4o-transcribe-diarize']));
  });

  it.skipIf(!isInstalled)('transcribes in every format', async () => {
    const formats = ['json', 'text', 'srt', 'vtt', 'verbose_json'];
    const words = { timestamp_granularities: ['word', 'segment'] };
    const { results, error } = await sdk(
      formats.map((format) => transcribe({ response_format: format, ...(format === 'verbose_json' && words) })),
    );
    expect(error).toBeUndefined();
    const [json, text, srt, vtt, verbose] = results;
    expect(json).toEqual({
      text: expect.stringMatching(TEXT),
      usage: { type: 'duration', seconds: expect.any(Number) },
    });
    expect(text).toMatch(TEXT);
    expect(srt).toMatch(/^1\n00:/);
    expect(vtt).toMatch(/^WEBVTT\n/);
    expect(verbose).toMatchObject({
      duration: expect.any(Number),
      language: 'unknown',
      segments: expect.arrayContaining([expect.objectContaining({ id: 0, text: expect.any(String), tokens: [] })]),
      words: expect.arrayContaining([{ word: expect.any(String), start: expect.any(Number), end: expect.any(Number) }]),
    });
  });

  it.skipIf(!isInstalled)('returns speakers of segments, known speakers by name', async () => {
    const reference = `data:audio/wav;base64,${Buffer.from(await voiceSample('adam', 8)).toString('base64')}`;
    const known = { known_speaker_names: ['Adam'], known_speaker_references: [reference] };
    const { results, error } = await sdk([transcribe(DIARIZE), transcribe({ ...DIARIZE, ...known })]);
    expect(error).toBeUndefined();
    const speakers = results.map(({ segments }) => [
      ...new Set(segments.map((segment: { speaker: string }) => segment.speaker)),
    ]);
    expect(speakers[0].slice(0, 2)).toEqual(['A', 'B']);
    expect(speakers[1].slice().sort().slice(0, 2)).toEqual(['A', 'Adam']);
    expect(results[0]).toMatchObject({ task: 'transcribe', duration: expect.any(Number), text: expect.any(String) });
    expect(results[0].segments[0]).toEqual({
      type: 'transcript.text.segment',
      id: 'seg_001',
      start: expect.any(Number),
      end: expect.any(Number),
      speaker: 'A',
      text: expect.any(String),
    });
  });

  it.skipIf(!isInstalled)('streams text and segments', async () => {
    const { results, error } = await sdk([transcribe({ stream: true }), transcribe({ ...DIARIZE, stream: true })]);
    expect(error).toBeUndefined();
    const [plain, diarized] = results.map((events) => events.map(({ type }: { type: string }) => type));
    expect(new Set(plain)).toEqual(new Set(['transcript.text.delta', 'transcript.text.done']));
    expect(diarized).toContain('transcript.text.segment');
    for (const events of results) expect(events.at(-1).text).toMatch(TEXT);
  });

  it.skipIf(!isInstalled)('raises its own exceptions', async () => {
    expect((await sdk([['models', {}]], 'bad')).error).toMatchObject({
      name: 'AuthenticationError',
      code: 'invalid_api_key',
    });
    const wrong = await sdk([transcribe({ response_format: 'xml' })]);
    expect(wrong.error).toMatchObject({ name: 'BadRequestError', param: 'response_format' });
    const noAudio = await sdk([transcribe({ file: join(root, 'package.json'), stream: true })]);
    expect(noAudio.error).toMatchObject({ name: 'APIError', param: 'file' });
  });

  it.skipIf(!isInstalled)('does not repeat a request whose transcription failed', async () => {
    const countJobs = async () => Number((await service.run('SELECT COUNT(*) AS jobs FROM jobs'))[0].jobs);
    engine.behaviours.push(...Array(20).fill(refuseAudio));
    try {
      const before = await countJobs();
      const { error } = await sdk([transcribe({})]);
      expect(error).toMatchObject({ name: 'InternalServerError', code: 'transcription_failed' });
      expect(await countJobs()).toBe(before + 1);
    } finally {
      engine.behaviours.length = 0;
    }
  });
});
