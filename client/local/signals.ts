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

/** wrangler's API; loading it takes most of a second, so only what needs it does. */
export function loadWrangler(): Promise<typeof import('wrangler')> {
  return leavingSignalsAlone(() => import('wrangler'));
}
