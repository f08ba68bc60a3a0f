import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { killOrphans, livingOwner } from '../local/owner.ts';
import { defaultStateDir, localDir } from '../local/paths.ts';
import { isAlive } from '../local/processes.ts';
import type { LocalService } from '../local/service.ts';
import { keepServiceFromInterrupts } from '../local/uninterrupted.ts';
import { findAnnounced } from './announcement.ts';
import { checkAddress } from './arguments.ts';
import { outlivesTerminal } from './interrupt.ts';
import { useLocalEngine } from './local-engine.ts';
import { localKey } from './local-key.ts';
import { CliError, EXIT, Interrupted, note } from './run.ts';

/** The service that a command works with. */
export interface Target {
  readonly url: string;
  readonly key: string;
  /** It was there before the command and is there afterwards, with its jobs and their results. */
  readonly lasts: boolean;
  /** Ends what was started for this command; does nothing to a service that was there before. */
  close(): Promise<void>;
}

const PREFIX = 'oneshot-';

/**
 * The service of ROLLCALL_URL and ROLLCALL_KEY, else the one that `npm start` runs, else one for the time of the
 * command.
 *
 * @param outlivesInterrupt the command continues after Ctrl-C, so a service that is started for it does, too
 */
export async function openTarget(signal: AbortSignal, outlivesInterrupt = false): Promise<Target> {
  const { ROLLCALL_URL: url, ROLLCALL_KEY: key } = process.env;
  if (url) {
    checkAddress('ROLLCALL_URL', url);
    if (!key) throw new CliError(EXIT.usage, 'ROLLCALL_URL is set but ROLLCALL_KEY is not.');
    if (!/^[!-~]+$/.test(key.trim()))
      throw new CliError(EXIT.usage, 'ROLLCALL_KEY is not a key: it holds characters that no key has.');
    return { url, key: key.trim(), lasts: true, close: async () => {} };
  }
  if (key) note('ROLLCALL_KEY is not used: it belongs to the service of ROLLCALL_URL, which is not set.');
  const announced = await findAnnounced(defaultStateDir());
  if (announced) return { ...announced, lasts: true, close: async () => {} };
  if (outlivesInterrupt || outlivesTerminal()) keepServiceFromInterrupts();
  return startOneShot(signal);
}

async function startOneShot(signal: AbortSignal): Promise<Target> {
  note('Starting a local service …');
  await sweepOneShots();
  const stateDir = join(localDir, `${PREFIX}${process.pid}`);
  const { startLocalService } = await import('../local/service.ts'); // brings Miniflare: not needed for a remote service
  const removeState = (): void => rmSync(stateDir, { recursive: true, force: true, maxRetries: 5 });
  let service: LocalService | undefined;
  const close = async (): Promise<void> => {
    await service?.stop();
    removeState();
  };
  try {
    await useLocalEngine();
    service = await startLocalService({ stateDir });
    signal.throwIfAborted();
    return { url: service.url, key: await localKey(service, stateDir), lasts: false, close };
  } catch (error) {
    await close().catch(() => {}); // What made the start fail may well make this fail: that is what is told.
    // Ctrl-C reaches the children of this process, too: their complaints are no news.
    if (signal.aborted) throw new Interrupted();
    throw new CliError(
      EXIT.unreachable,
      `The local service did not start: ${error instanceof Error ? error.message : error}`,
    );
  }
}

/** Clears away what one-shot services left that were killed. */
async function sweepOneShots(): Promise<void> {
  if (!existsSync(localDir)) return;
  for (const name of readdirSync(localDir)) {
    const stateDir = join(localDir, name);
    if (!name.startsWith(PREFIX) || isAlive(Number(name.slice(PREFIX.length))) || livingOwner(stateDir)) continue;
    await killOrphans(stateDir);
    rmSync(stateDir, { recursive: true, force: true });
  }
}
