/**
 * Miniflare, mended. Whatever starts a runtime takes it from here.
 *
 * A call of Miniflare's bindings that is not awaited (`prepare`, `bind`) waits with `Atomics.wait` for a thread that stores 1 and then notifies.
 * When that thread is held up between the two, its notice arrives during the next call, which ends without an answer; from then on every
 * call of the process gets the answer of the one before (cloudflare/workers-sdk pull request 15552, mended in a release that
 * Node 20 does not run).
 */
waitForChanges();

export * from 'miniflare';

/** Waits are cut into pieces of this length, so that a runtime that does not answer is noticed. */
const PIECE_MS = 500;

interface WaitLimit {
  readonly limitMs: number;
  readonly onExceeded: () => void;
}
const limits = new Set<WaitLimit>();

/**
 * Limits how long a binding's call may block this process. A runtime that hangs would block it for good, and with it every timer.
 *
 * @param onExceeded ends the runtime that does not answer: then the call fails
 * @returns ends the limit
 */
export function limitBlockingCalls(limitMs: number, onExceeded: () => void): () => void {
  const limit = { limitMs, onExceeded };
  limits.add(limit);
  return () => limits.delete(limit);
}

/** From now on a wait for one shared integer, without a limit of time, ends when the integer has changed, whoever notifies before. */
function waitForChanges(): void {
  const { wait } = Atomics;
  Atomics.wait = (array: Int32Array | BigInt64Array, index: number, value: number | bigint, timeoutMs?: number) => {
    const once = (ms?: number) => wait(array as Int32Array, index, value as number, ms);
    if (array.length > 1 || timeoutMs !== undefined) return once(timeoutMs);
    // Pieces are counted, not the clock: a process that stood still did not wait.
    for (let waitedMs = 0; ; ) {
      const outcome = once(PIECE_MS);
      if (Atomics.load(array as Int32Array, index) !== value) return outcome === 'not-equal' ? outcome : 'ok';
      if (outcome !== 'timed-out') continue;
      for (const { limitMs, onExceeded } of limits) {
        if (waitedMs < limitMs && waitedMs + PIECE_MS >= limitMs) onExceeded();
      }
      waitedMs += PIECE_MS;
    }
  };
}
