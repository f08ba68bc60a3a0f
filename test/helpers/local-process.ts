import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { findProcess, listProcesses } from '../../client/local/processes.ts';

export const root = resolve(import.meta.dirname, '../..');

export interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Commands use no engine or login of this machine, and leave no service running. */
const ISOLATED = { ROLLCALL_ASR_URL: '', ROLLCALL_CONFIG: join(tmpdir(), 'no-login'), ROLLCALL_KEEP_SECONDS: '0' };

/** Subcommands of `rollcall` by the name of the npm script that runs them. */
const SUBCOMMANDS: Readonly<Record<string, string>> = { start: 'serve', key: 'keys' };

/** Runs the command of an npm script with only the given ROLLCALL_ variables. */
export function runCli(name: string, args: readonly string[], env: Record<string, string> = {}): Promise<Finished> {
  return collect(spawnCli(name, args, env));
}

/**
 * @param ownGroup runs it in a new process group, as a terminal does: `process.kill(-pid)` reaches all its processes
 */
export function spawnCli(
  name: string,
  args: readonly string[],
  env: Record<string, string> = {},
  ownGroup = false,
): ChildProcess {
  const inherited = Object.entries(process.env).filter(([key]) => !/^(ROLLCALL_|npm_|INIT_CWD|PORT$)/.test(key));
  return spawn(process.execPath, ['bin/rollcall.js', SUBCOMMANDS[name] ?? name, ...args], {
    cwd: root,
    env: { ...Object.fromEntries(inherited), ...ISOLATED, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: ownGroup,
  });
}

export function collect(child: ChildProcess): Promise<Finished> {
  let stdout = '';
  let stderr = '';
  child.stdout?.on('data', (chunk: Buffer) => {
    stdout += chunk.toString();
  });
  child.stderr?.on('data', (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  return new Promise((done) => child.on('close', (code) => done({ code, stdout, stderr })));
}

/** `npm start` in a separate process, with a separate state folder. */
export interface RunningService {
  readonly url: string;
  readonly key: string;
  readonly pid: number;
  /** Output on stdout and stderr so far. */
  log(): string;
  /** kill -9 of the Node process only; its workerd continues. */
  killParent(): Promise<void>;
  /** kill -9 of the Node process and of workerd. */
  killAll(): Promise<void>;
  /** Sends Ctrl-C. @returns the exit code */
  interrupt(): Promise<number | null>;
  workerdPids(): number[];
}

/**
 * @param ownGroup runs it in a new process group, as a terminal does
 * @param env ROLLCALL_ variables
 * @throws if it ends or a minute passes before it prints its key
 */
export async function startService(
  stateDir: string,
  port = 0,
  ownGroup = false,
  env: Record<string, string> = {},
): Promise<RunningService> {
  const child = spawnCli('start', ['--verbose'], { ...env, ROLLCALL_STATE: stateDir, PORT: String(port) }, ownGroup);
  let stdout = '';
  let stderr = '';
  child.stderr?.on('data', (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  const closed = new Promise<number | null>((done) => child.on('close', done));
  const text = await new Promise<string>((ready, refuse) => {
    const timer = setTimeout(() => refuse(new Error(`no key within a minute:\n${stdout}${stderr}`)), 60_000);
    child.stdout?.on('data', (chunk: Buffer) => {
      stdout += chunk.toString();
      if (/^key: .*\n/m.test(stdout)) {
        clearTimeout(timer);
        ready(stdout);
      }
    });
    void closed.then((code) => refuse(new Error(`ended with ${code}:\n${stdout}${stderr}`)));
  });
  const url = /http:\/\/\S+/.exec(text)?.[0] ?? '';
  const key = /^key: (\S+)$/m.exec(text)?.[1] ?? '';
  const pid = child.pid ?? 0;

  const workerdPids = (): number[] => {
    const entry = `--socket-addr=entry=127.0.0.1:${new URL(url).port} `;
    return listProcesses()
      .filter(({ command }) => command.includes('workerd') && `${command} `.includes(entry))
      .map((entry) => entry.pid);
  };
  const kill = async (pids: readonly number[]): Promise<void> => {
    for (const victim of pids) {
      if (findProcess(victim)) process.kill(victim, 'SIGKILL');
    }
    while (pids.some((victim) => findProcess(victim))) await new Promise((wake) => setTimeout(wake, 10));
  };
  return {
    url,
    key,
    pid,
    log: () => stdout + stderr,
    killParent: () => kill([pid]),
    killAll: () => kill([pid, ...workerdPids()]),
    interrupt: () => {
      child.kill('SIGINT');
      return closed;
    },
    workerdPids,
  };
}

/** State folders of services whose command has ended; other tests may run at the same time. */
export function abandonedServices(): string[] {
  const local = join(root, '.wrangler', 'rollcall');
  if (!existsSync(local)) return [];
  const pidOf = (name: string): number | undefined => Number(/^kept-(\d{1,10})$/.exec(name)?.[1]) || undefined;
  return readdirSync(local).filter((name) => pidOf(name) !== undefined && !findProcess(pidOf(name) ?? 0));
}

export const conversation = join(root, 'test', 'fixtures', 'conversation.mp3');
