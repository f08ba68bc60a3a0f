import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findProcess, listProcesses, type ProcessInfo } from './processes.ts';

/** Which process uses a state folder. Written before workerd is started, so that no kill leaves an unknown child. */
interface Owner {
  readonly pid: number;
  readonly startedAt: string;
  /** Entry port of its workerd. */
  readonly port: number;
  /** Set for a command that will be done in a moment, not for a service. */
  readonly brief?: boolean;
  /** Where other commands may use its database; absent while it starts. */
  readonly control?: ControlAddress;
}

export interface ControlAddress {
  readonly url: string;
  readonly token: string;
}

const fileName = 'owner.json';

/** The process that uses this state folder now, if any. */
export function livingOwner(stateDir: string): Owner | undefined {
  const owner = readOwner(stateDir);
  if (!owner) return undefined;
  return findProcess(owner.pid)?.startedAt === owner.startedAt ? owner : undefined;
}

/** Takes the state folder for this process. */
export function recordOwner(stateDir: string, use: Omit<Owner, 'pid' | 'startedAt'>): void {
  const owner: Owner = { pid: process.pid, startedAt: findProcess(process.pid)?.startedAt ?? '', ...use };
  const path = join(stateDir, fileName);
  writeFileSync(`${path}.new`, JSON.stringify(owner), { mode: 0o600 });
  renameSync(`${path}.new`, path);
}

export function forgetOwner(stateDir: string): void {
  rmSync(join(stateDir, fileName), { force: true });
}

/**
 * Ends the workerd that a killed owner left behind: it would hold the port and the database files, and go on working.
 *
 * @returns pids that were killed
 */
export async function killOrphans(stateDir: string): Promise<number[]> {
  const owner = readOwner(stateDir);
  if (!owner || livingOwner(stateDir)) return [];
  const orphans = listProcesses().filter((entry) => isOrphanOn(owner.port, entry));
  for (const { pid } of orphans) {
    if (findProcess(pid)) process.kill(pid, 'SIGKILL');
  }
  const deadline = Date.now() + 5000;
  while (orphans.some(({ pid }) => findProcess(pid)) && Date.now() < deadline) {
    await new Promise((wake) => setTimeout(wake, 20));
  }
  forgetOwner(stateDir);
  return orphans.map(({ pid }) => pid);
}

/**
 * workerd tells its entry address on its command line. Another project's workerd may have got the same port since, but
 * then the Node process that started it is still there, while ours is gone.
 */
function isOrphanOn(port: number, { command, parentPid }: ProcessInfo): boolean {
  if (!command.includes('workerd') || !`${command} `.includes(`--socket-addr=entry=127.0.0.1:${port} `)) return false;
  return parentPid === 1 || !/(^|\/)(node|bun|deno)\b/.test(findProcess(parentPid)?.command ?? '');
}

function readOwner(stateDir: string): Owner | undefined {
  try {
    return JSON.parse(readFileSync(join(stateDir, fileName), 'utf8')) as Owner;
  } catch {
    return undefined;
  }
}
