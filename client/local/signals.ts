import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { localDir, makePrivateDir } from './paths.ts';
import { withVariables } from './variables.ts';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Runs what would install handlers that end the process at once (Miniflare and wrangler do), and takes those handlers away
 * again: whoever started the service decides what a signal means, and stops it properly.
 */
export async function leavingSignalsAlone<T>(run: () => T | Promise<T>): Promise<T> {
  const before = SIGNALS.map((signal) => process.listeners(signal));
  const value = await run();
  SIGNALS.forEach((signal, index) => {
    const added = process.listeners(signal).filter((listener) => !before[index].includes(listener));
    for (const listener of added) process.removeListener(signal, listener);
  });
  return value;
}

let wrangler: Promise<typeof import('wrangler')> | undefined;

/**
 * wrangler's API; loading it takes most of a second, so only what needs it does. Where its log goes it looks up while it is loaded: to the home folder, a
 * file for every process.
 */
export function loadWrangler(): Promise<typeof import('wrangler')> {
  wrangler ??= load();
  return wrangler;
}

function load(): Promise<typeof import('wrangler')> {
  makePrivateDir(localDir);
  const log = join(localDir, 'wrangler-api.log');
  rmSync(log, { force: true });
  return withVariables({ WRANGLER_LOG_PATH: log }, () => leavingSignalsAlone(() => import('wrangler')));
}
