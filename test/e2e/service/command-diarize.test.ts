import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { RollcallClient } from '../../../client/sdk/client.ts';
import {
  abandonedServices,
  collect,
  conversation,
  type RunningService,
  root,
  runCli,
  spawnCli,
  startService,
} from '../../helpers/local-process.ts';
import { errorRate, readRttm } from '../../helpers/score.ts';

vi.setConfig({ testTimeout: 180_000, hookTimeout: 120_000 });

const truth = readRttm(readFileSync(join(root, 'test/fixtures/conversation.rttm'), 'utf8'));

let scratch: string;
let stateDir: string;
let service: RunningService;

beforeAll(async () => {
  scratch = mkdtempSync(join(tmpdir(), 'rollcall-cli-'));
  stateDir = join(scratch, 'state');
  service = await startService(stateDir);
});

afterAll(async () => {
  await service?.interrupt();
  rmSync(scratch, { recursive: true, force: true, maxRetries: 5 });
});

const connection = () => ({ ROLLCALL_URL: service.url, ROLLCALL_KEY: service.key });
const diarize = (...args: string[]) => runCli('diarize', args, connection());

describe('npm run diarize', () => {
  it('starts a service if there is none, and ends it', async () => {
    const emptyState = { ROLLCALL_STATE: join(scratch, 'empty') };
    const run = await runCli('diarize', [conversation, '--format', 'rttm'], emptyState);
    expect(run.stderr).toContain('Starting a local service');
    expect(run).toMatchObject({ code: 0 });
    expect(run.stdout).toMatch(/^(SPEAKER conversation 1 \d+\.\d{3} \d+\.\d{3} <NA> <NA> SPEAKER_\d\d <NA> <NA>\n)+$/);
    const turns = readRttm(run.stdout);
    expect(new Set(turns.map(({ speaker }) => speaker)).size).toBe(3);
    expect(turns[0].speaker).toBe('SPEAKER_00');
    expect(errorRate(truth, turns)).toBeLessThan(0.2);
    expect(abandonedServices()).toEqual([]);
  });

  it('uses the service that npm start announced', async () => {
    const run = await runCli('diarize', [conversation, '--model', 'community-1'], { ROLLCALL_STATE: stateDir });
    expect(run.stderr).not.toContain('Starting a local service');
    expect(run.code).toBe(0);
    expect(run.stdout).toMatch(/^(\d+\.\d{3} {2}\d+\.\d{3} {2}SPEAKER_\d\d\n)+$/);
  });

  it('sends options to the service and writes the result to a file', async () => {
    const output = join(scratch, 'out.json');
    const options = ['--num-speakers', '2', '--exclusive', '--confidence', '--turn-level-confidence'];
    const run = await diarize(conversation, '--format', 'json', '--output', output, ...options);
    expect(run).toMatchObject({ code: 0, stdout: '' });
    const result = JSON.parse(readFileSync(output, 'utf8'));
    expect(new Set(result.diarization.map(({ speaker }: { speaker: string }) => speaker)).size).toBe(2);
    expect(result.diarization[0].confidence).toHaveProperty('SPEAKER_00');
    expect(result.exclusiveDiarization.length).toBeGreaterThan(0);
    expect(result.confidence.score.length * result.confidence.resolution).toBeCloseTo(56.7, 0);
  });

  it('reports a failed job in one line', async () => {
    const page = join(scratch, 'page.mp3');
    writeFileSync(page, '<!doctype html><title>Not found</title>'.repeat(50));
    const silence = join(scratch, 'silence.wav');
    writeFileSync(silence, wavOfSilence(20));
    for (const source of [page, silence, `${service.url}/nothing.wav`]) {
      const run = await diarize(source);
      expect(run, source).toMatchObject({ code: 1, stdout: '' });
      const messages = run.stderr.split('\n').filter((line) => line.startsWith('rollcall: '));
      expect(messages, run.stderr).toHaveLength(1);
      expect(run.stderr).not.toMatch(/\n {4}at /);
    }
  });

  it('refuses bad files before it sends a request', async () => {
    const empty = join(scratch, 'empty.wav');
    writeFileSync(empty, '');
    expect(await diarize(empty)).toMatchObject({ code: 1, stdout: '', stderr: `rollcall: ${empty} is empty.\n` });
    expect(await diarize('no-such-file.wav')).toMatchObject({ code: 2, stdout: '' });
    expect(await diarize(scratch)).toMatchObject({ code: 2, stdout: '' });
  });

  it('refuses wrong usage', async () => {
    const wrong = [
      [],
      [conversation, '--num-speakers', '0'],
      [conversation, '--min-speakers', '3', '--max-speakers', '2'],
      [conversation, '--num-speakers', '4', '--max-speakers', '2'],
      [conversation, '--model', 'best'],
      [conversation, '--format', 'doc'],
      [conversation, '--wrong'],
      ['ftp://example.com/a.wav'],
    ];
    for (const args of wrong) expect(await diarize(...args), args.join(' ')).toMatchObject({ code: 2, stdout: '' });
  });

  it('reports that the service refuses the key', async () => {
    const badKey = await runCli('diarize', [conversation], { ...connection(), ROLLCALL_KEY: 'nonsense' });
    expect(badKey).toMatchObject({ code: 1, stdout: '' });
    expect(badKey.stderr).toContain('401');
  });

  it('reports that the service cannot be reached', async () => {
    const run = await runCli('diarize', [conversation], { ROLLCALL_URL: 'http://127.0.0.1:9', ROLLCALL_KEY: 'k' });
    expect(run).toMatchObject({ code: 3, stdout: '' });
    expect(run.stderr).toMatch(/^rollcall: http:\/\/127\.0\.0\.1:9 cannot be reached/);
    const noKey = await runCli('diarize', [conversation], { ROLLCALL_URL: service.url });
    expect(noKey).toMatchObject({ code: 2, stderr: 'rollcall: ROLLCALL_URL is set but ROLLCALL_KEY is not.\n' });
  });

  it.each([
    ['diarizing', 'interrupted'],
    ['uploading', 'interrupted'],
    ['diarizing', 'sent Ctrl-C by the terminal and by npm'],
  ])('cancels its job when, during %s, it is %s', async (stage, signal) => {
    const child = spawnCli('diarize', [conversation], connection());
    let stderr = '';
    child.stderr?.on('data', (chunk: Buffer) => {
      stderr += chunk.toString();
      if (child.killed || !stderr.includes(stage)) return;
      child.kill('SIGINT');
      if (signal !== 'interrupted') setTimeout(() => child.kill('SIGINT'), 20);
    });
    const run = await collect(child);
    expect(run).toMatchObject({ code: 130, stdout: '' });
    const client = new RollcallClient({ url: service.url, key: service.key });
    const jobId = /^The job (\S+) is canceled\.$/m.exec(run.stderr)?.[1];
    if (stage === 'diarizing')
      expect(await client.retrieve(jobId ?? '')).toMatchObject({ value: { status: 'canceled' } });
    const jobs = await fetch(`${service.url}/v1/jobs?status=running`, {
      headers: { Authorization: `Bearer ${service.key}` },
    });
    expect(await jobs.json()).toMatchObject({ items: [] });
  });

  it('exits without a message when it is interrupted while its service starts', async () => {
    const child = spawnCli('diarize', [conversation], { ROLLCALL_STATE: join(scratch, 'empty') });
    child.stderr?.once('data', () => child.kill('SIGINT'));
    expect(await collect(child)).toEqual({ code: 130, stdout: '', stderr: 'Starting a local service …\n' });
    expect(abandonedServices()).toEqual([]);
  });

  it('ends its service when it is interrupted', async () => {
    const child = spawnCli('diarize', [conversation], { ROLLCALL_STATE: join(scratch, 'empty') });
    let stderr = '';
    child.stderr?.on('data', (chunk: Buffer) => {
      stderr += chunk.toString();
      if (!child.killed && stderr.includes('diarizing')) child.kill('SIGINT');
    });
    const { code, stdout } = await collect(child);
    expect({ code, stdout }).toEqual({ code: 130, stdout: '' });
    expect(abandonedServices()).toEqual([]);
  });
});

/** 16 kHz, 16 bit, mono. */
function wavOfSilence(seconds: number): Buffer {
  const bytes = seconds * 32_000;
  const header = Buffer.alloc(44);
  header.write('RIFF', 0, 'latin1');
  header.writeUInt32LE(36 + bytes, 4);
  header.write('WAVEfmt ', 8, 'latin1');
  header.writeUInt32LE(16, 16);
  header.writeUInt16LE(1, 20);
  header.writeUInt16LE(1, 22);
  header.writeUInt32LE(16_000, 24);
  header.writeUInt32LE(32_000, 28);
  header.writeUInt16LE(2, 32);
  header.writeUInt16LE(16, 34);
  header.write('data', 36, 'latin1');
  header.writeUInt32LE(bytes, 40);
  return Buffer.concat([header, Buffer.alloc(bytes)]);
}
