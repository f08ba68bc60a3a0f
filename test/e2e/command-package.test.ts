import { type ExecFileException, execFile, execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { conversation, type Finished, root } from '../helpers/local-process.ts';
import { errorRate, readRttm } from '../helpers/score.ts';

let project: string;
/** Why npm could not install the package's dependencies, from its cache or the registry. */
let skipReason: string | undefined;
const file = (name: string) => join(project, name);
const stateDir = () => file('state');

beforeAll(() => {
  project = mkdtempSync(join(tmpdir(), 'rollcall-command-'));
  const pack = ['pack', '--silent', '--pack-destination', project];
  const tarball = execFileSync('npm', pack, { cwd: root, encoding: 'utf8' }).trim().split('\n').at(-1);
  writeFileSync(file('package.json'), '{"name":"empty","private":true}');
  copyFileSync(conversation, file('meeting one.mp3'));
  copyFileSync(conversation, file('two.mp3'));
  try {
    const flags = ['--prefer-offline', '--no-audit', '--no-fund', '--silent'];
    execFileSync('npm', ['install', ...flags, `./${tarball}`], { cwd: project, stdio: 'pipe', timeout: 300_000 });
  } catch (error) {
    skipReason = (error as { stderr?: Buffer }).stderr?.toString().trim() || String(error);
  }
}, 400_000);

afterAll(async () => {
  for (const pid of keptServices()) process.kill(pid, 'SIGTERM');
  for (let tries = 0; tries < 100 && keptServices().length > 0; tries++) {
    await new Promise((wake) => setTimeout(wake, 100));
  }
  rmSync(project, { recursive: true, force: true, maxRetries: 5 });
});

/** Process ids of services that keep running after a command. */
function keptServices(): number[] {
  const folder = join(stateDir(), 'rollcall');
  if (!existsSync(folder)) return [];
  return readdirSync(folder).flatMap((name) => {
    const owner = join(folder, name, 'owner.json');
    return existsSync(owner) ? [(JSON.parse(readFileSync(owner, 'utf8')) as { pid: number }).pid] : [];
  });
}

function rollcall(args: readonly string[], input = ''): Promise<Finished> {
  const inherited = Object.entries(process.env).filter(([key]) => !/^(ROLLCALL_|npm_|INIT_CWD)/.test(key));
  const env = { ...Object.fromEntries(inherited), XDG_STATE_HOME: stateDir(), XDG_CONFIG_HOME: file('config') };
  return new Promise((done) => {
    const settle = (error: ExecFileException | null, stdout: string, stderr: string) =>
      done({ code: error ? Number(error.code) : 0, stdout, stderr });
    const child = execFile(file('node_modules/.bin/rollcall'), args, { cwd: project, env }, settle);
    child.stdin?.end(input === '' ? undefined : readFileSync(input));
  });
}

describe('the command rollcall, installed from its tarball', () => {
  it('diarizes with a service that keeps running for the next command', async ({ skip }) => {
    if (skipReason !== undefined) return skip(skipReason);
    const first = await rollcall(['diarize', 'meeting one.mp3', '--format', 'rttm']);
    expect(first, first.stderr).toMatchObject({ code: 0 });
    expect(first.stderr).toContain('It keeps running for 10 minutes');
    const truth = readRttm(readFileSync(join(root, 'test/fixtures/conversation.rttm'), 'utf8'));
    expect(errorRate(truth, readRttm(first.stdout))).toBeLessThan(0.2);
    expect(keptServices()).toHaveLength(1);

    const second = await rollcall(['diarize', '*.mp3', '-', '--json', '--output', 'results'], conversation);
    expect(second, second.stderr).toMatchObject({ code: 0, stdout: '' });
    expect(second.stderr).not.toContain('Starting');
    expect(readdirSync(file('results')).sort()).toEqual(['meeting one.json', 'stdin.json', 'two.json']);
    expect(keptServices()).toHaveLength(1);
  });

  it('lists, shows and deletes jobs, and shows the usage', async ({ skip }) => {
    if (skipReason !== undefined) return skip(skipReason);
    const listed = await rollcall(['jobs', 'list', '--json']);
    const jobs = JSON.parse(listed.stdout) as { id: string; status: string }[];
    expect(jobs.map(({ status }) => status)).toEqual(Array(4).fill('succeeded'));
    const [{ id }] = jobs;
    expect((await rollcall(['jobs', 'get', id])).stdout).toMatch(/status {3}succeeded/);
    expect((await rollcall(['jobs', 'get', id, '--format', 'rttm'])).stdout).toMatch(/^SPEAKER /);
    expect(await rollcall(['jobs', 'delete', id])).toMatchObject({ code: 0 });
    expect(await rollcall(['jobs', 'get', id])).toMatchObject({ code: 1, stdout: '' });
    expect((await rollcall(['usage'])).stdout).toMatch(/diarize .* 4 jobs/);
  });

  it('shows its version and help, and refuses unknown commands and unreachable services', async ({ skip }) => {
    if (skipReason !== undefined) return skip(skipReason);
    expect((await rollcall(['--version'])).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
    expect((await rollcall(['--help'])).stdout).toMatch(/diarize(.*\n)+ *serve(.*\n)+ *jobs/);
    expect(await rollcall(['nonsense'])).toMatchObject({ code: 2, stdout: '' });
    expect(await rollcall(['login', 'http://127.0.0.1:9'])).toMatchObject({ code: 2 });
    expect(existsSync(file('config'))).toBe(false);
  });
});
