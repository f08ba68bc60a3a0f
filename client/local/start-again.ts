import { AssertionError } from 'node:assert';

const MOST_STARTS = 3;

/**
 * Starts something built on Miniflare, and once more where Miniflare lost count. Its synchronous calls (`db.prepare`) wait for a thread; where that thread is
 * preempted between its answer and its wake-up, the next call wakes too early, finds no answer and fails an assertion, and so do all later ones of this instance
 * (cloudflare/workers-sdk pull request 15552). It takes a busy machine and bad luck; a new instance begins anew.
 *
 * @throws what `start` throws, after the last of three assertions, or at once where it is anything else
 */
export async function startAgain<T>(start: () => Promise<T>): Promise<T> {
  for (let count = 1; ; count++) {
    try {
      return await start();
    } catch (error) {
      if (!(error instanceof AssertionError) || count === MOST_STARTS) throw error;
    }
  }
}
