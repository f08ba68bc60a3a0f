import { mkdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { pause } from '../sdk/pause.ts';
import { LocalStateError, makePrivateDir, persistDir, writePrivateFile } from './paths.ts';
import { findProcess, isAlive, listProcesses, type ProcessInfo } from './processes.ts';

/** The port or the state folder is in use. */
export class LocalServiceBusy extends LocalStateError {}

/**
 * The process that uses a state folder. The file is written before workerd starts, so that a later process can find the
 * workerd of a killed owner.
 */
interface Owner {
  readonly pid: number;
  /** Empty where processes cannot be listed. */
  readonly startedAt: string;
  /** Entry port of its workerd. While it is `starting`: port of the previous owner, whose workerd may still run. */
  readonly port: number;
  /** Whether it has the folder but no port yet. */
  readonly starting?: boolean;
  /** Whether it is a short command, not a service. */
  readonly brief?: boolean;
  /** Absent while it starts. */
  readonly control?: ControlAddress;
}

/** Address at which a running service runs statements on its database, and the bearer token. */
interface ControlAddress {
  readonly url: string;
  readonly token: string;
}

const FILE_NAME = 'owner.json';
/** Longest time that the service waits for a command such as `npm run key` to release the state folder. */
const COMMAND_WAIT_MS = 20_000;
/** The kernel may close the sockets of a killed process a moment after the process has left the process list. */
export const PORT_WAIT_MS = 5000;

/**
 * Claims a state folder for this process, and kills the workerd of an owner that was killed.
 *
 * @param port 0 selects a free port
 * @param use `brief` for a short command: a service that starts meanwhile waits for its end
 * @returns the port
 * @throws LocalServiceBusy when another process has the port or the state folder
 */
export async function claimState(stateDir: string, port: number, use: { brief?: boolean } = {}): Promise<number> {
  makePrivateDir(stateDir);
  const deadline = Date.now() + COMMAND_WAIT_MS;
  let owner = await takeState(stateDir, use);
  while ((owner?.brief || owner?.starting) && Date.now() < deadline) {
    await pause(50);
    owner = await takeState(stateDir, use);
  }
  if (owner) {
    throw new LocalServiceBusy(
      `The service is already running on http://127.0.0.1:${owner.port} (process ${owner.pid}).`,
    );
  }
  try {
    makePrivateDir(persistDir(stateDir), { closes: true });
    const killed = await killOrphans(stateDir);
    const claimed = await claimPort(port, killed.length > 0 ? Date.now() + PORT_WAIT_MS : 0);
    recordOwner(stateDir, { port: claimed, ...use });
    return claimed;
  } catch (error) {
    forgetOwner(stateDir);
    throw error;
  }
}

/**
 * Checks that the port is free, because workerd reports a port in use only in its log.
 *
 * @param deadline time until which a port in use is tried again, milliseconds since the epoch
 */
export async function claimPort(port: number, deadline: number): Promise<number> {
  for (;;) {
    const tried = await probePort(port);
    if (typeof tried === 'number') return tried;
    if (tried.code !== 'EADDRINUSE' || Date.now() >= deadline) {
      const reason = tried.code === 'EADDRINUSE' ? 'is in use by another program' : `cannot be used (${tried.code})`;
      const remedy = 'Choose another one with the environment variable PORT, for example 8788.';
      throw new LocalServiceBusy(`Port ${port} on 127.0.0.1 ${reason}. ${remedy}`);
    }
    await pause(50);
  }
}

/** Opens and closes a listening socket. @returns the port or the error */
function probePort(port: number): Promise<number | NodeJS.ErrnoException> {
  return new Promise((done) => {
    const probe = createServer();
    probe.once('error', done);
    probe.listen({ port, host: '127.0.0.1', exclusive: true }, () => {
      const address = probe.address();
      probe.close(() => done(typeof address === 'object' && address ? address.port : port));
    });
  });
}

/** Returns the running process that uses this state folder, if any. */
export function runningOwner(stateDir: string): Owner | undefined {
  const owner = readOwner(stateDir);
  if (!owner) return undefined;
  const isRunning = owner.startedAt === '' ? isAlive(owner.pid) : findProcess(owner.pid)?.startedAt === owner.startedAt;
  return isRunning ? owner : undefined;
}

/**
 * Claims the state folder for this process if no running process has it. Of several concurrent calls, one succeeds.
 *
 * @returns the other owner, or undefined on success
 */
async function takeState(stateDir: string, use: { brief?: boolean }): Promise<Owner | undefined> {
  return withLock(stateDir, () => {
    const owner = runningOwner(stateDir);
    if (!owner) recordOwner(stateDir, { port: readOwner(stateDir)?.port ?? 0, starting: true, ...use });
    return owner;
  });
}

/** Longer than any process keeps the lock: an older lock belongs to a killed process. */
const STALE_LOCK_MS = 10_000;

async function withLock<T>(stateDir: string, work: () => T): Promise<T> {
  const lock = join(stateDir, 'owner.lock');
  while (!makeDir(lock)) {
    const madeAtMs = statSync(lock, { throwIfNoEntry: false })?.mtimeMs ?? Date.now();
    if (Date.now() - madeAtMs > STALE_LOCK_MS) rmSync(lock, { recursive: true, force: true });
    await pause(10);
  }
  try {
    return work();
  } finally {
    rmSync(lock, { recursive: true, force: true });
  }
}

/** @returns whether this call created the folder */
function makeDir(path: string): boolean {
  try {
    mkdirSync(path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

/** Records this process as the owner of the state folder. */
export function recordOwner(stateDir: string, use: Omit<Owner, 'pid' | 'startedAt'>): void {
  const owner: Owner = { pid: process.pid, startedAt: findProcess(process.pid)?.startedAt ?? '', ...use };
  writePrivateFile(join(stateDir, FILE_NAME), JSON.stringify(owner));
}

/** Removes the record of this process. */
export function forgetOwner(stateDir: string): void {
  rmSync(join(stateDir, FILE_NAME), { force: true });
}

/**
 * Kills the workerd of an owner that was killed. Otherwise it would keep the port and the database files, and continue
 * to process jobs. The recorded owner must be this process or one that has ended.
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
    await pause(20);
  }
  return orphans.map(({ pid }) => pid);
}

/**
 * The command line of workerd contains its entry address. Another project's workerd may have the same port by now, but
 * then the Node process that started it still runs.
 */
function isOrphanOn(port: number, { command, parentPid }: ProcessInfo): boolean {
  if (!command.includes('workerd') || !`${command} `.includes(`--socket-addr=entry=127.0.0.1:${port} `)) return false;
  return parentPid === 1 || !/(^|\/)(node|bun|deno)\b/.test(findProcess(parentPid)?.command ?? '');
}

function readOwner(stateDir: string): Owner | undefined {
  try {
    return JSON.parse(readFileSync(join(stateDir, FILE_NAME), 'utf8')) as Owner;
  } catch {
    return undefined;
  }
}
