import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import {
  collect,
  conversation,
  type Finished,
  type RunningService,
  root,
  runCli,
  spawnCli,
  startService,
} from '../../test/helpers/local-process.ts';
import { openDestination } from './deliver.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const FULL_DISK = '/dev/full';

let scratch: string;
const file = (name: string) => join(scratch, name);

beforeAll(() => {
  scratch = mkdtempSync(join(tmpdir(), 'rollcall-deliver-'));
});
afterAll(() => rmSync(scratch, { recursive: true, force: true, maxRetries: 5 }));

describe('--output', () => {
  it.each([
    ['', /needs the name of a file/],
    ['.', /is a folder/],
    ['absent/', /is a folder/],
    ['absent/out.txt', /there is no folder .*absent/],
    ['text/out.txt', /text is not a folder/],
    ['text', /would be overwritten/],
    ['x'.repeat(256), /cannot be created \(.*too long/],
  ])('refuses %j', (name, message) => {
    writeFileSync(file('text'), 'kept');
    expect(() => openDestination(name, scratch, ['text'])).toThrow(message);
    expect(readFileSync(file('text'), 'utf8')).toBe('kept');
  });

  it('refuses a recording that is found relative to the repository', () => {
    const name = 'package.json';
    expect(() => openDestination(join(process.cwd(), name), scratch, [name])).toThrow(/would be overwritten/);
  });

  it('accepts a new file, an existing file and a device', () => {
    writeFileSync(file('old.txt'), 'old');
    mkdirSync(file('folder'), { recursive: true });
    for (const name of ['new.txt', 'old.txt', 'folder/new.txt', 'Zoë 会議.txt']) {
      expect(openDestination(name, scratch, ['text'])).toEqual({ kind: 'file', name, path: file(name) });
    }
    expect(openDestination('/dev/null', scratch, [])).toMatchObject({ kind: 'file' });
    expect(openDestination('-', scratch, [])).toEqual({ kind: 'stdout' });
    expect(openDestination(undefined, scratch, [])).toEqual({ kind: 'stdout' });
    expect(existsSync(file('new.txt'))).toBe(false);
  });

  it('is checked before the service is called', async () => {
    const unreachable = { ROLLCALL_URL: 'http://127.0.0.1:9', ROLLCALL_KEY: 'k' };
    for (const command of ['diarize', 'live', 'voiceprint']) {
      const run = await runCli(command, [conversation, '--output', file('absent/out.txt')], unreachable);
      expect(run, command).toMatchObject({ code: 2, stdout: '' });
      expect(run.stderr).toMatch(/^rollcall: --output: .* there is no folder .*\n$/);
    }
  });

  it('is checked before the recording of a live stream is opened', async () => {
    const run = await runCli('live', [file('absent.wav'), '--output', file('absent/out.txt')]);
    expect(run).toMatchObject({ code: 2, stdout: '' });
    expect(run.stderr).toMatch(/^rollcall: --output: .* there is no folder .*\n$/);
  });
});

describe('a result that cannot be written', () => {
  let service: RunningService;
  let serviceEnv: Record<string, string>;
  beforeAll(async () => {
    service = await startService(file('state'));
    serviceEnv = { ROLLCALL_URL: service.url, ROLLCALL_KEY: service.key };
  });
  afterAll(() => service?.interrupt());

  it.runIf(existsSync(FULL_DISK))('is printed if the disk of --output is full', async () => {
    const run = await runCli('diarize', [conversation, '--output', FULL_DISK], serviceEnv);
    expect(run.code).toBe(1);
    expect(run.stdout).toMatch(/^(\d+\.\d{3} {2}\d+\.\d{3} {2}SPEAKER_\d\d\n)+$/);
    expect(run.stderr).toMatch(/\/dev\/full could not be written: no space left on device/);
  });

  it.runIf(existsSync(FULL_DISK))('can be fetched with the printed command if stdout is full', async () => {
    const run = await toFullDisk('diarize', [conversation, '--format', 'rttm'], serviceEnv);
    expect(run.code).toBe(1);
    expect(linesOf(run)).toEqual([expect.stringContaining('the result could not be printed: no space left on device')]);
    const address = /"(http[^"]+)"/.exec(run.stderr)?.[1] ?? '';
    const response = await fetch(address, { headers: { Authorization: `Bearer ${service.key}` } });
    expect(await response.text()).toMatch(/^SPEAKER /);
  });

  it('ends the command quietly with the code of SIGPIPE if the reader closed stdout', async () => {
    const child = spawnCli('diarize', [conversation], serviceEnv);
    child.stdout?.destroy();
    const run = await collect(child);
    const stderr = expect.stringMatching(/^uploading …\ndiarizing …\n\S+: \d speakers?.*\n$/);
    expect(run).toMatchObject({ code: 141, stderr });
  });

  it('is printed even if the reader closed stderr', async () => {
    const child = spawnCli('diarize', [conversation], serviceEnv);
    child.stderr?.destroy();
    expect(await collect(child)).toMatchObject({ code: 0, stdout: expect.stringContaining('SPEAKER_00') });
  });
});

describe('the output of other commands', () => {
  it.each([
    ['models', ['list']],
    ['diarize', ['--help']],
  ])('%s %j ends quietly when its pipe is closed', async (command, args) => {
    const child = spawnCli(command, args);
    child.stdout?.destroy();
    expect(await collect(child)).toMatchObject({ code: 141, stderr: '' });
  });

  it.runIf(existsSync(FULL_DISK)).each([
    ['models', ['list']],
    ['diarize', ['--help']],
  ])('%s %j reports a full disk in one line', async (command, args) => {
    const run = await toFullDisk(command, args, {});
    expect(run.code).toBe(1);
    expect(run.stderr).toBe('rollcall: the standard output could not be written: no space left on device.\n');
  });
});

function toFullDisk(command: string, args: readonly string[], env: Record<string, string>): Promise<Finished> {
  const cli = [process.execPath, 'bin/rollcall.js', command, ...args];
  const child: ChildProcess = spawn('sh', ['-c', `exec "$@" > ${FULL_DISK}`, 'sh', ...cli], {
    cwd: root,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  return collect(child);
}

function linesOf({ stderr }: Finished): string[] {
  return stderr.split('\n').filter((line) => line.startsWith('rollcall: '));
}
