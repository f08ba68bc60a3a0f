import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { conversation, type RunningService, runCli, startService } from '../../helpers/local-process.ts';
import { errorRate, readRttm } from '../../helpers/score.ts';
import { conversationTurns, voiceSample } from '../../helpers/voices.ts';

vi.setConfig({ testTimeout: 180_000, hookTimeout: 120_000 });

let scratch: string;
let service: RunningService;
const file = (name: string) => join(scratch, name);

beforeAll(async () => {
  scratch = mkdtempSync(join(tmpdir(), 'rollcall-cli-identify-'));
  for (const name of ['adam', 'beth', 'carl']) writeFileSync(file(`${name}.wav`), await voiceSample(name));
  service = await startService(file('state'));
});
afterAll(async () => {
  await service?.interrupt();
  rmSync(scratch, { recursive: true, force: true, maxRetries: 5 });
});

const run = (command: string, ...args: string[]) =>
  runCli(command, args, { ROLLCALL_URL: service.url, ROLLCALL_KEY: service.key });

describe('npm run identify', () => {
  it('names people from recordings and from voiceprints', async () => {
    const created = await run('voiceprint', file('beth.wav'), '--output', file('beth.print'));
    expect(created).toMatchObject({ code: 0, stdout: '' });
    const voices = ['adam=adam.wav', 'beth=beth.print', 'carl=carl.wav'].flatMap((voice) => [
      '--voiceprint',
      voice.replace('=', `=${scratch}/`),
    ]);
    const found = await run('identify', conversation, ...voices, '--format', 'rttm');
    expect(found.stderr).toMatch(/SPEAKER_00: adam \(adam \d+, beth \d+, carl \d+\)/);
    expect(found.code).toBe(0);
    const turns = readRttm(found.stdout);
    expect([...new Set(turns.map(({ speaker }) => speaker))].sort()).toEqual(['adam', 'beth', 'carl']);
    expect(errorRate(conversationTurns(), turns)).toBeLessThan(0.2);
  });

  it('also names people as an option of diarize', async () => {
    const found = await run('diarize', conversation, '--voiceprint', `Adam=${file('adam.wav')}`);
    expect(found.code).toBe(0);
    expect(found.stdout).toMatch(/^\d+\.\d{3} {2}\d+\.\d{3} {2}Adam$/m);
    expect(found.stdout).toMatch(/SPEAKER_01$/m);
    const conflict = await run(
      'diarize',
      conversation,
      '--voiceprint',
      `Adam=${file('adam.wav')}`,
      '--speech-probability',
    );
    expect(conflict.code).toBe(2);
  });

  it('applies the threshold of diarize', async () => {
    const adam = ['--voiceprint', `Adam=${file('adam.wav')}`];
    expect((await run('diarize', file('beth.wav'), ...adam)).stdout).toContain('Adam');
    const withThreshold = await run('diarize', file('beth.wav'), ...adam, '--threshold', '90');
    expect(withThreshold.code).toBe(0);
    expect(withThreshold.stdout).toContain('SPEAKER_00');
    expect(withThreshold.stdout).not.toContain('Adam');
  });

  it('names the faulty voiceprint among several', async () => {
    const created = await run('voiceprint', file('beth.wav'));
    writeFileSync(file('beth.print'), `> rollcall@0.1.0 voiceprint\n\n${created.stdout}`); // as without --silent
    writeFileSync(file('damaged.print'), `${created.stdout.slice(0, 100)}\n`);
    writeFileSync(file('text.wav'), 'This is text.\n');
    const good = ['--voiceprint', `beth=${file('beth.print')}`];
    for (const [name, code] of [
      ['damaged.print', 2],
      ['text.wav', 1],
    ] as const) {
      for (const [command, ...options] of [['identify'], ['diarize'], ['live', '--fast']]) {
        const faulty = ['--voiceprint', `carl=${file(name)}`];
        const result = await run(command, conversation, ...options, ...good, ...faulty);
        expect(result, command).toMatchObject({ code, stdout: '' });
        expect(result.stderr).toContain(`rollcall: --voiceprint carl=${file(name)}: `);
      }
    }
  });

  it.each([
    [['identify', 'a.wav'], /--voiceprint/],
    [['identify', 'FILE', '--voiceprint', 'adam'], /NAME=FILE/],
    [['identify', 'FILE', '--voiceprint', 'adam=nowhere.wav'], /no such file/],
    [['identify', 'FILE', '--voiceprint', 'a=FILE', '--voiceprint', 'a=FILE'], /twice/],
    [['identify', 'FILE', '--voiceprint', 'a=FILE', '--threshold', '101'], /0 to 100/],
    [['diarize', 'FILE', '--voiceprint', 'a=FILE', '--threshold', '-1'], /0 to 100/],
    [['diarize', 'FILE', '--threshold', '50'], /--threshold needs a --voiceprint/],
    [['diarize', 'FILE', '--voiceprint', ' =FILE'], /is blank/],
    [['live', 'FILE', '--voiceprint', ' =FILE'], /is blank/],
    [['identify', 'FILE', '--voiceprint', 'Speaker_1=FILE'], /must not begin with SPEAKER_/],
    [['identify', 'FILE', '--voiceprint', `${'a'.repeat(101)}=FILE`], /100 characters at most/],
  ])('exits with 2 for %j', async ([command, ...args], message) => {
    const filled = args.map((arg) => arg.replace('FILE', file('adam.wav')));
    const result = await run(command, ...filled);
    expect([result.code, result.stdout]).toEqual([2, '']);
    expect(result.stderr).toMatch(message);
  });

  it('reports why a recording gives no voiceprint', async () => {
    const result = await run('voiceprint', conversation);
    expect(result).toMatchObject({ code: 1, stdout: '' });
    expect(result.stderr).toMatch(/longer than 30 seconds/);
  });
});
