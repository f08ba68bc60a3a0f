import { existsSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import {
  abandonedServices,
  collect,
  conversation,
  type Finished,
  type RunningService,
  runCli,
  spawnCli,
  startService,
} from '../../helpers/local-process.ts';
import { errorRate, readRttm } from '../../helpers/score.ts';
import { conversationSamples, conversationTurns, voiceSample } from '../../helpers/voices.ts';
import { wav16 } from '../../helpers/wav.ts';

vi.setConfig({ testTimeout: 180_000, hookTimeout: 120_000 });

let scratch: string;
let service: RunningService;

beforeAll(async () => {
  scratch = mkdtempSync(join(tmpdir(), 'rollcall-cli-live-'));
  service = await startService(join(scratch, 'state'));
});
afterAll(async () => {
  await service?.interrupt();
  rmSync(scratch, { recursive: true, force: true, maxRetries: 5 });
});

const connection = () => ({ ROLLCALL_URL: service.url, ROLLCALL_KEY: service.key });
const live = (...args: string[]) => runCli('live', args, connection());
const CORRECTION = /^\d+\.\d{3} {2}SPEAKER_\d\d becomes SPEAKER_\d\d until \d+\.\d{3}$/;
const EVENT = /^\d+\.\d{3} {2}SPEAKER_\d\d (starts( \(.*\))?|ends)$/;

/** Sends Ctrl-C to the process group at the first end of a turn, as a terminal does; npm may repeat it. */
async function runInterrupted(env: Record<string, string>, times = 1): Promise<Finished> {
  const child = spawnCli('live', [conversation], env, true);
  let isSent = false;
  let stderr = '';
  child.stderr?.on('data', (chunk: Buffer) => {
    stderr += chunk.toString();
    if (isSent || !/ ends$/m.test(stderr)) return;
    isSent = true;
    process.kill(-child.pid!, 'SIGINT');
    if (times > 1) setTimeout(() => child.kill('SIGINT'), 20);
  });
  return collect(child);
}

describe('npm run live', () => {
  it('prints events during the stream, and the turns at the end', async () => {
    const run = await live(conversation, '--fast', '--format', 'rttm');
    expect(run).toMatchObject({ code: 0 });
    const lines = run.stderr.trim().split('\n');
    expect(lines.length).toBeGreaterThan(10);
    for (const line of lines) if (!CORRECTION.test(line)) expect(line).toMatch(EVENT);
    const turns = readRttm(run.stdout);
    const plain = await live(conversation, '--fast', '--format', 'rttm', '--no-corrections');
    const events = plain.stderr.trim().split('\n');
    expect(events).toEqual(lines.filter((line) => !CORRECTION.test(line)));
    expect(events.filter((line) => line.includes('starts'))).toHaveLength(readRttm(plain.stdout).length);
    expect(run.stdout).toMatch(/^(SPEAKER conversation 1 \d+\.\d{3} \d+\.\d{3} <NA> <NA> SPEAKER_\d\d <NA> <NA>\n)+$/);
    expect(errorRate(conversationTurns(), turns)).toBeLessThan(0.3);
  });

  it('names known people, and writes to a file', async () => {
    const voice = join(scratch, 'adam.wav');
    writeFileSync(voice, await voiceSample('adam'));
    const output = join(scratch, 'turns.txt');
    const options = ['--voiceprint', `Adam=${voice}`, '--latency', '1500', '--max-speakers', '3'];
    const run = await live(conversation, '--fast', ...options, '--format', 'json');
    expect(run).toMatchObject({ code: 0 });
    const { diarization, identification } = JSON.parse(run.stdout);
    expect(identification).toHaveLength(diarization.length);
    expect(identification.map(({ speaker }: { speaker: string }) => speaker)).toContain('Adam');
    const withOutput = await live(voice, '--fast', '--output', output);
    expect(withOutput).toMatchObject({ code: 0, stdout: '' });
    expect(existsSync(output)).toBe(true);
  });

  it.each([1, 2])('prints the turns up to Ctrl-C, sent %i times', async (times) => {
    const run = await runInterrupted(connection(), times);
    expect(run.code).toBe(130);
    expect(run.stdout).toMatch(/^(\d+\.\d{3} {2}\d+\.\d{3} {2}SPEAKER_\d\d\n)+$/);
    expect(run.stderr).not.toContain('rollcall:');
  });

  it('prints the turns up to the end of a truncated file, and an error', async () => {
    const name = join(scratch, 'shrinking.wav');
    const samples = await conversationSamples();
    writeFileSync(
      name,
      wav16(
        Float32Array.from({ length: 200 * 16_000 }, (_, at) => samples[at % samples.length]),
        16_000,
      ),
    );
    const child = spawnCli('live', [name, '--speed', '16'], connection());
    let stderr = '';
    child.stderr?.on('data', (chunk: Buffer) => {
      stderr += chunk.toString();
      // The command reads half a minute ahead.
      if (/ ends$/m.test(stderr)) truncateSync(name, 3_300_000);
    });
    const run = await collect(child);
    expect(run.code).toBe(1);
    expect(run.stdout.trim().split('\n').length).toBeGreaterThan(2);
    expect(run.stderr).toMatch(/rollcall: .*shrinking\.wav cannot be read any further: .*\.\n$/);
    expect(run.stderr).not.toMatch(/ at .*\.ts:/);
  });

  it('prints the turns with a service that it has started, and ends it', async () => {
    const run = await runInterrupted({ ROLLCALL_STATE: join(scratch, 'empty') });
    expect(run.stderr).toContain('Starting a local service');
    expect(run.code, run.stderr).toBe(130);
    expect(run.stdout).toMatch(/SPEAKER_00\n/);
    expect(abandonedServices()).toEqual([]);
  });

  it('reports that the service refuses the key', async () => {
    const badKey = await runCli('live', [conversation], { ...connection(), ROLLCALL_KEY: 'nonsense' });
    expect(badKey).toMatchObject({ code: 1, stdout: '' });
  });

  it('reports that no speech was found', async () => {
    const silence = join(scratch, 'silence.wav');
    writeFileSync(silence, wav16(new Float32Array(3 * 16_000), 16_000));
    expect(await live(silence, '--fast')).toEqual({ code: 0, stdout: '', stderr: 'No speech was found.\n' });
  });

  it("prints the decoder's warnings about a file", async () => {
    const cut = join(scratch, 'cut.wav');
    const sample = await voiceSample('adam');
    writeFileSync(cut, sample.subarray(0, Math.floor(sample.length / 2)));
    const run = await live(cut, '--fast');
    expect(run.code).toBe(0);
    expect(run.stderr).toMatch(/^warning: .*cut\.wav: The WAV file is shorter than its header says/m);
    expect(run.stderr.match(/^warning:/gm)).toHaveLength(1);
  });

  it('checks the source before it sends a request', async () => {
    const page = join(scratch, 'page.mp3');
    writeFileSync(page, '<!doctype html><title>Not found</title>'.repeat(50));
    expect(await live(page)).toMatchObject({ code: 1, stdout: '' });
    expect(await live('no-such-file.wav')).toMatchObject({ code: 2, stdout: '' });
    expect(await live('https://example.com/a.wav')).toMatchObject({ code: 2, stdout: '' });
    const noRecorder = await runCli('live', ['mic'], { ...connection(), PATH: scratch });
    expect(noRecorder).toMatchObject({ code: 2, stdout: '' });
    expect(noRecorder.stderr).toMatch(/^rollcall: The microphone needs one of these programs/);
  });

  it.each([
    [[]],
    [['FILE', '--speed', '0']],
    [['FILE', '--speed', '2', '--fast']],
    [['FILE', '--latency', 'x']],
    [['FILE', '--latency', '299']],
    [['FILE', '--max-speakers', '1.5']],
    [['FILE', '--max-speakers', '9']],
    [['FILE', '--format', 'srt']],
    [['FILE', '--voiceprint', 'adam']],
    [['FILE', '--voiceprint', 'adam=nowhere.wav']],
  ])('exits with 2 for %j', async (args) => {
    const run = await live(...args.map((arg) => (arg === 'FILE' ? conversation : arg)));
    expect(run).toMatchObject({ code: 2, stdout: '' });
  });

  it('reports that the service cannot be reached', async () => {
    const run = await runCli('live', [conversation], { ROLLCALL_URL: 'http://127.0.0.1:9', ROLLCALL_KEY: 'k' });
    expect(run).toMatchObject({ code: 3, stdout: '' });
  });
});
