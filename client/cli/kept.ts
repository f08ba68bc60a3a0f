import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { closeSync, existsSync, openSync, readdirSync, readSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { sourcesHash } from '../local/bundle.ts';
import { killOrphans, runningOwner } from '../local/owner.ts';
import { localDir, makePrivateDir, projectDir } from '../local/paths.ts';
import { isAlive } from '../local/processes.ts';
import { pause } from '../sdk/pause.ts';
import { type Announcement, findAnnounced } from './announcement.ts';
import { useLocalEngine } from './local-engine.ts';
import { CliError, EXIT, Interrupted, note } from './run.ts';

const PREFIX = 'kept-';
const DEFAULT_KEEP_SECONDS = 600;
const RENEWAL_MS = 5000;
const POLL_MS = 25;
/** Longest start. A start takes a few seconds, and about 30 s on a loaded machine. */
const START_MS = 180_000;
/** Longest stop. A stop takes about 1 s, and about 10 s on a loaded machine. */
const STOP_MS = 30_000;
/** Age up to which a folder without an owner file belongs to a starting service; later its service was killed. */
const STARTING_MS = 60_000;

/** A service in a separate process, for this command and later ones. */
export interface KeptService extends Announcement {
  /** Ends the use by this command, and the service itself if ROLLCALL_KEEP_SECONDS is 0. */
  close(): Promise<void>;
}

/** File whose modification time is the time of the last use. */
export const usedPath = (stateDir: string): string => join(stateDir, 'used');

/**
 * Finds the service that an earlier command left running with the same sources and engines, or starts one.
 * ROLLCALL_KEEP_SECONDS is how long it runs after its last use; 0 ends it with this command.
 *
 * @param signal aborts the start
 */
export async function openKept(signal: AbortSignal): Promise<KeptService> {
  const keepSeconds = readKeepSeconds(process.env.ROLLCALL_KEEP_SECONDS);
  await useLocalEngine();
  const stateDir = join(localDir, PREFIX + (keepSeconds === 0 ? process.pid : fingerprint(keepSeconds)));
  let service = await findAnnounced(stateDir);
  if (!service) {
    note('Starting a local service …');
    await sweep();
    service = await start(stateDir, keepSeconds, signal);
    if (keepSeconds > 0) {
      note(`It keeps running for ${durationText(keepSeconds)} to speed up later commands (ROLLCALL_KEEP_SECONDS).`);
    }
  }
  const renew = (): void => {
    if (existsSync(stateDir)) writeFileSync(usedPath(stateDir), '');
  };
  renew();
  const renewal = setInterval(renew, RENEWAL_MS);
  renewal.unref();
  const close = async (): Promise<void> => {
    clearInterval(renewal);
    renew();
    if (keepSeconds === 0) await stop(runningOwner(stateDir)?.pid);
  };
  return { ...service, close };
}

function readKeepSeconds(text: string | undefined): number {
  if (text === undefined || text === '') return DEFAULT_KEEP_SECONDS;
  if (!/^\d{1,6}$/.test(text)) {
    throw new CliError(EXIT.usage, `ROLLCALL_KEEP_SECONDS must be a whole number of seconds, not "${text}".`);
  }
  return Number(text);
}

const durationText = (seconds: number): string =>
  seconds % 60 === 0 ? `${seconds / 60} minute${seconds === 60 ? '' : 's'}` : `${seconds} seconds`;

/** Hash of the sources, settings and versions that determine the behaviour of a service. */
function fingerprint(keepSeconds: number): string {
  const variables = Object.entries(process.env).filter(([name]) => /^(ROLLCALL_ASR_|MINIFLARE_)/.test(name));
  const parts = [sourcesHash(projectDir), keepSeconds, variables.sort(), process.version];
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 16);
}

async function start(stateDir: string, keepSeconds: number, signal: AbortSignal): Promise<Announcement> {
  makePrivateDir(stateDir);
  const startLog = openSync(join(stateDir, 'start.log'), 'a+', 0o600);
  const args = [join(projectDir, 'bin/rollcall.js'), 'kept-service', stateDir, String(keepSeconds)];
  const stdio = ['ignore', 'ignore', startLog] as const;
  const child = spawn(process.execPath, args, { detached: true, stdio: [...stdio], windowsHide: true });
  let hasEnded = false;
  child.once('exit', () => (hasEnded = true));
  child.once('error', () => (hasEnded = true));
  child.unref();
  try {
    for (const deadline = Date.now() + START_MS; Date.now() < deadline; ) {
      if (signal.aborted) {
        await stop(child.pid);
        // The signal may end the service before it can remove its state.
        if (!runningOwner(stateDir)) removeState(stateDir);
        throw new Interrupted();
      }
      const service = existsSync(stateDir) ? await findAnnounced(stateDir) : undefined;
      if (service) return service;
      // A running owner is the same service, started earlier by another command.
      if (hasEnded && !runningOwner(stateDir)) break;
      await pause(POLL_MS);
    }
    const reason = readAll(startLog).trim().split('\n').at(-1) || 'it does not answer';
    throw new CliError(EXIT.unreachable, `The local service did not start: ${reason}`);
  } finally {
    closeSync(startLog);
  }
}

/** Reads an open file, because the service removes its folder when it ends. */
function readAll(file: number): string {
  const buffer = Buffer.alloc(64 * 1024);
  return buffer.toString('utf8', 0, readSync(file, buffer, 0, buffer.length, 0));
}

/** Ends a service and waits until it has removed its state. */
async function stop(pid: number | undefined): Promise<void> {
  if (pid === undefined || !isAlive(pid)) return;
  process.kill(pid, 'SIGTERM');
  for (const deadline = Date.now() + STOP_MS; isAlive(pid) && Date.now() < deadline; ) {
    await pause(POLL_MS);
  }
}

/** Removes the state of services that were killed. */
async function sweep(): Promise<void> {
  if (!existsSync(localDir)) return;
  for (const name of readdirSync(localDir)) {
    const stateDir = join(localDir, name);
    if (!name.startsWith(PREFIX) || runningOwner(stateDir)) continue;
    const madeAtMs = statSync(stateDir, { throwIfNoEntry: false })?.mtimeMs ?? Date.now();
    if (Date.now() - madeAtMs < STARTING_MS) continue;
    await killOrphans(stateDir);
    removeState(stateDir);
  }
}

function removeState(stateDir: string): void {
  rmSync(stateDir, { recursive: true, force: true, maxRetries: 5 });
}
