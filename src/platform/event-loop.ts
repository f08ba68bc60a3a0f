/** Milliseconds since the Unix epoch; on the platform it advances only with I/O. */
export const now = (): number => Date.now();

/** Waits at least `ms` milliseconds. */
export const sleep = (ms: number): Promise<void> => scheduler.wait(ms);

/** Work on the thread for this long has delayed other requests. */
const HELD_MS = 40;
/** Enough for all steps of a request, each of which needs an iteration of the event loop; 1 % of a model run. */
const CATCH_UP_MS = 2;
/** If a wait takes this much longer than requested, other work has used the thread and may not have finished. */
const BUSY_MS = 5;
/** Longest yield of batch work, which must make progress even during too many live streams. */
const MAX_YIELD_MS = 1000;

/** When a yield last ended in this isolate. */
let resumedAt = 0;

/** Waits one iteration of the event loop, which also advances the clock. For live streams, which must not lag. */
export const yieldOnce = (): Promise<void> => scheduler.wait(0);

/**
 * Yields to other requests of the isolate and advances the clock. After long work they get 2 ms: with a single
 * iteration of the event loop, each step of a request, for example a database query, would wait for another model run.
 */
export const pause = (): Promise<void> => yieldFor(HELD_MS);

/**
 * For batch work: yields until no other work has used the thread for 2 ms. Locally all Workers share one thread, and an
 * isolate notices the live streams of another one only by waits that take too long. A live stream yields single
 * iterations between its model runs, so that batch work continues only when the stream has caught up.
 */
export const yieldUntilIdle = (): Promise<void> => yieldFor(MAX_YIELD_MS);

/** @param maxMs no further wait begins this long after the last yield */
async function yieldFor(maxMs: number): Promise<void> {
  await yieldOnce();
  let now = Date.now();
  if (now - resumedAt < HELD_MS) return;
  let delayMs: number;
  do {
    const from = now;
    await scheduler.wait(CATCH_UP_MS);
    now = Date.now();
    delayMs = now - from - CATCH_UP_MS;
  } while (delayMs >= BUSY_MS && now - resumedAt < maxMs);
  resumedAt = now;
}

const PAUSE_BYTES = 1024 * 1024;

/** The same chunks, yielding to other requests after every mebibyte: a fast stream would block them. */
export async function* paused<T extends Uint8Array>(
  chunks: AsyncIterable<T>,
  takePause: () => Promise<void> = pause,
): AsyncGenerator<T, void> {
  let bytes = 0;
  for await (const chunk of chunks) {
    yield chunk;
    bytes += chunk.length;
    if (bytes < PAUSE_BYTES) continue;
    bytes = 0;
    await takePause();
  }
}
