import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { conversation, runCli } from '../../test/helpers/local-process.ts';

vi.setConfig({ testTimeout: 60_000 });

let scratch: string;
const file = (name: string) => join(scratch, name);

beforeAll(() => {
  scratch = mkdtempSync(join(tmpdir(), 'rollcall-mistakes-'));
  writeFileSync(file('state-is-a-file'), '');
  mkdirSync(file('damaged'));
  mkdirSync(file('empty/v3'), { recursive: true });
  writeFileSync(file('damaged/secrets.json'), '{');
  writeFileSync(file('alice.print'), 'UkNWUAEAAAA=\n');
  writeFileSync(file('-talk.wav'), 'RIFF');
});
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** Mistakes of new users, with the exit code and the message. */
const mistakes: [string, string[], Record<string, string>, number, RegExp][] = [
  ['diarize', ['-'], {}, 1, /The standard input is empty/],
  ['diarize', ['*.mp9'], {}, 2, /no file matches/],
  ['diarize', ['a.wav', 'b.wav'], {}, 2, /need --output FOLDER/],
  ['usage', [], { ROLLCALL_KEEP_SECONDS: 'x' }, 2, /ROLLCALL_KEEP_SECONDS must be/],
  ['live', ['-'], {}, 2, /Only diarize, transcribe, identify and voiceprint read the standard input/],
  ['diarize', [conversation, '--language', 'de'], {}, 2, /need --transcribe/],
  ['account', ['usage', 'a', '--from', '2026-02-01', '--to', '2026-01-01'], {}, 2, /--from must not be after --to\./],
  ['account', ['usage', 'a', '--from', '2020-01-01'], {}, 2, /366 days before --to \(now, if not given\)/],
  ['account', ['usage', 'a', '--to', '2026-01-31 09:30'], {}, 2, /--to must be an ISO 8601 date or a datetime/],
  [
    'models',
    ['pull', 'studio'],
    { ROLLCALL_MODELS_MIRROR: 'mirror' },
    2,
    /ROLLCALL_MODELS_MIRROR is not an address that begins/,
  ],
  [
    'voiceprint',
    ['alice.print'],
    { INIT_CWD: 'here', npm_lifecycle_event: 'voiceprint' },
    2,
    /alice\.print is already a voiceprint/,
  ],
  ['diarize', ['/dev/null'], {}, 2, /not a regular file\. Save/],
  ['diarize', [' '], {}, 2, /name of the recording is blank/],
  ['diarize', ['www.example.com/talk.mp3'], {}, 2, /no such file\. An address begins with https:/],
  [
    'diarize',
    [conversation],
    { ROLLCALL_URL: 'localhost:8787', ROLLCALL_KEY: 'k' },
    2,
    /begins with http:\/\/ or https:\/\//,
  ],
  ['diarize', [conversation], { ROLLCALL_URL: 'http://127.0.0.1:9', ROLLCALL_KEY: 'schlüssel–' }, 2, /is not a key/],
  ['diarize', [conversation], { npm_lifecycle_event: 'diarize', npm_config_exclusive: 'true' }, 2, /Write -- before/],
  ['deploy', [], { npm_lifecycle_event: 'deploy', npm_config_dry_run: 'true' }, 2, /npm took --dry-run for itself/],
  ['start', [], { ROLLCALL_STATE: 'state-is-a-file', PORT: '0' }, 1, /state-is-a-file is, or lies in, a file/],
  ['key', ['--account', 'a'], { ROLLCALL_STATE: 'state-is-a-file' }, 1, /state-is-a-file is, or lies in, a file/],
  ['start', [], { ROLLCALL_STATE: 'damaged', PORT: '0' }, 1, /secrets\.json is damaged/],
  ['key', ['--account', 'a'], { ROLLCALL_STATE: 'damaged' }, 1, /secrets\.json is damaged/],
  ['key', ['--list', '--account', 'nobody'], { ROLLCALL_STATE: 'empty' }, 1, /There is no account nobody/],
  [
    'key',
    ['--list'],
    { ROLLCALL_STATE: 'mistyped' },
    1,
    /There is no state of a service in \S+mistyped\. ROLLCALL_STATE/,
  ],
  ['account', ['list'], { ROLLCALL_STATE: 'mistyped' }, 1, /There is no state of a service in/],
  ['account', ['webhook-secret', 'a'], { ROLLCALL_STATE: 'mistyped' }, 1, /There is no state of a service in/],
  ['account', ['rotate-webhook-secret', 'a', '--remote'], {}, 2, /--remote needs ROLLCALL_SIGNING_KEY/],
  // Checked before the change, because the command cannot show a new secret or key without the signing key.
  [
    'account',
    ['rotate-webhook-secret', 'a', '--remote'],
    { ROLLCALL_SIGNING_KEY: 'cut off' },
    2,
    /is not a signing key: base64/,
  ],
  [
    'key',
    ['--account', 'a', '--remote'],
    { ROLLCALL_SIGNING_KEY: `${'A'.repeat(42)}==` },
    2,
    /is not a signing key: base64/,
  ],
];

describe('a mistake on the command line', () => {
  it.each(mistakes)(
    'causes a message of one line without a stack trace: %s %j %j',
    async (command, args, env, code, message) => {
      const { ROLLCALL_STATE: state, INIT_CWD: here, ...rest } = env;
      const folders = {
        ...(state !== undefined && { ROLLCALL_STATE: file(state) }),
        ...(here && { INIT_CWD: scratch }),
      };
      const run = await runCli(command, args, { ...rest, ...folders });
      expect(run).toMatchObject({ code, stdout: '' });
      expect(run.stderr).toMatch(message);
      expect(run.stderr).toMatch(/^(rollcall is starting …\n)?rollcall: .*\n$/);
      expect(existsSync(file('mistyped')), 'the command must not create the mistyped folder').toBe(false);
    },
  );

  it.each([
    [['--latency', '100'], /from 300 to 5000/],
    [['--max-speakers', '9'], /from 1 to 8/],
  ])('is refused before a voiceprint job starts: live %j', async (args, message) => {
    const run = await runCli('live', [conversation, '--voiceprint', `A=${conversation}`, ...args]);
    expect(run).toMatchObject({ code: 2, stdout: '' });
    expect(run.stderr).toMatch(message);
    expect(run.stderr).not.toContain('Starting');
    expect((await runCli('live', ['--help'])).stdout).toMatch(/300 to 5000;\s+1000\s+if\s+not\s+given/);
  });

  it('explains that names with spaces need quotes', async () => {
    const run = await runCli('voiceprint', ['my', 'recording.wav']);
    expect(run).toMatchObject({ code: 2, stdout: '' });
    expect(run.stderr).toContain('A name with spaces needs quotes');
  });

  it('explains how to give a file whose name begins with a dash', async () => {
    const run = await runCli('diarize', ['-talk.wav'], { INIT_CWD: scratch });
    expect(run).toMatchObject({ code: 2, stdout: '' });
    expect(run.stderr).toMatch(
      /^error: unknown option '-talk\.wav'\n(.*\n)*\(For the file of that name, write \.\/-talk\.wav\)\n$/,
    );
    expect((await runCli('diarize', ['-none.wav'], { INIT_CWD: scratch })).stderr).not.toContain('the file');
  });

  it('causes a help text that shows how the command was called', async () => {
    expect((await runCli('account', ['show', '--help'])).stdout).toMatch(/^Usage: rollcall account show /);
    const byNpm = await runCli('start', ['--help'], { npm_lifecycle_event: 'start' });
    expect(byNpm.stdout).toMatch(/^Usage: npm run start -- \[options\]\n/);
  });
});
