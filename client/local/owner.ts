import { mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findProcess, isAlive, listProcesses, type ProcessInfo } from './processes.ts';

/** Which process uses a state folder. Written before workerd is started, so that no kill leaves an unknown child. */
interface Owner {
  readonly pid: number;
  /** Empty where processes cannot be listed. */
  readonly startedAt: string;
  /** Entry port of its workerd; while it is `starting` that of the owner before, whose workerd may still be there. */
  readonly port: number;
  /** It has the folder, and no port yet. */
  readonly starting?: boolean;
  /** Set for a command that will be done in a moment, not for a service. */
  readonly brief?: boolean;
  /** Where other commands may use its database; absent while it starts. */
  readonly control?: ControlAddress;
}

/** Where a running service takes statements on its database, and what they must carry. */
export interface ControlAddress {
  readonly url: string;
  readonly token: string;
}

const fileName = 'owner.json';

/** The process that uses this state folder now, if any. */
export function livingOwner(stateDir: string): Owner | undefined {
  const owner = readOwner(stateDir);
  if (!owner) return undefined;
  const isLiving = owner.startedAt === '' ? isAlive(owner.pid) : findProcess(owner.pid)?.startedAt === owner.startedAt;
  return isLiving ? owner : undefined;
}

/**
 * Takes the state folder for this process if no living one has it. Of several that try at once, one gets it.
 *
 * @returns whose it is if it could not be had
 */
export async function takeState(stateDir: string, use: { brief?: boolean }): Promise<Owner | undefined> {
  return alone(stateDir, () => {
    const owner = livingOwner(stateDir);
    if (!owner) recordOwner(stateDir, { port: readOwner(stateDir)?.port ?? 0, starting: true, ...use });
    return owner;
  });
}

/** Longer than the lock is ever held: one that is older was left by a process that was killed with it. */
const STALE_LOCK_MS = 10_000;

/** Does what must be one step for all processes. */
async function alone<T>(stateDir: string, work: () => T): Promise<T> {
  const lock = join(stateDir, 'owner.lock');
  while (!makeDir(lock)) {
    const madeAtMs = statSync(lock, { throwIfNoEntry: false })?.mtimeMs ?? Date.now();
    if (Date.now() - madeAtMs > STALE_LOCK_MS) rmSync(lock, { recursive: true, force: true });
    await new Promise((wake) => setTimeout(wake, 10));
  }
  try {
    return work();
  } finally {
    rmSync(lock, { recursive: true, force: true });
  }
}

/** Whether it was this call that made it. */
function makeDir(path: string): boolean {
  try {
    mkdirSync(path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

/** Says what this process does with the state folder that it has. */
export function recordOwner(stateDir: string, use: Omit<Owner, 'pid' | 'startedAt'>): void {
  const owner: Owner = { pid: process.pid, startedAt: findProcess(process.pid)?.startedAt ?? '', ...use };
  const path = join(stateDir, fileName);
  writeFileSync(`${path}.new`, JSON.stringify(owner), { mode: 0o600 });
  renameSync(`${path}.new`, path);
}

/** Says that this process has done with the state folder. */
export function forgetOwner(stateDir: string): void {
  rmSync(join(stateDir, fileName), { force: true });
}

/**
 * Ends the workerd that a killed owner left behind: it would hold the port and the database files, and go on working. The folder is of this process, or
 * of a dead one.
 *
 * @returns pids that were killed
 */
export async function killOrphans(stateDir: string): Promise<number[]> {
  const port = readOwner(stateDir)?.port;
  if (!port) return [];
  const orphans = listProcesses().filter((entry) => isOrphanOn(port, entry));
  for (const { pid } of orphans) {
    if (findProcess(pid)) process.kill(pid, 'SIGKILL');
  }
  const deadline = Date.now() + 5000;
  while (orphans.some(({ pid }) => findProcess(pid)) && Date.now() < deadline) {
    await new Promise((wake) => setTimeout(wake, 20));
  }
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
