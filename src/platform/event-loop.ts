/** Milliseconds since the Unix epoch; inside the platform it moves on only with I/O. */
export const now = (): number => Date.now();

/** Waits at least that many milliseconds. */
export const sleep = (ms: number): Promise<void> => scheduler.wait(ms);

/** Work that held the thread for this long has delayed other requests. */
const HELD_MS = 40;
/** Long enough for all steps of a request, each of which takes a turn of the event loop; 1 % of a model run. */
const CATCH_UP_MS = 2;
/** A wait that takes this much longer than requested: others have used the thread, and may not have finished. */
const BUSY_MS = 5;
/** Longest yield of batch work: it must make progress even beside too many live streams. */
const MAX_YIELD_MS = 1000;

/** When a yield last ended in this isolate. */
let resumedAt = 0;

/** Waits one turn of the event loop; the clock moves on. For live streams, which must not fall behind. */
export const turn = (): Promise<void> => scheduler.wait(0);

/**
 * Yields to other requests of the isolate and lets the clock move on. After long work they get 2 ms: with a single turn
 * of the event loop, each step of a request, such as a database's answer, would wait for another model run.
 */
export const pause = (): Promise<void> => yieldFor(HELD_MS);

/**
 * For batch work: yields until nothing else has used the thread for 2 ms. Locally all Workers share one thread, and an
 * isolate notices the live streams of another one only by the time that a wait loses. A live stream yields single turns
 * between its model runs, so that batch work continues only when the stream has caught up.
 */
export const yieldToOthers = (): Promise<void> => yieldFor(MAX_YIELD_MS);

/** @param maxMs no further wait begins this long after the last yield */
async function yieldFor(maxMs: number): Promise<void> {
  await turn();
  let now = Date.now();
  if (now - resumedAt < HELD_MS) return;
  let lostMs: number;
  do {
    const from = now;
    await scheduler.wait(CATCH_UP_MS);
    now = Date.now();
    lostMs = now - from - CATCH_UP_MS;
  } while (lostMs >= BUSY_MS && now - resumedAt < maxMs);
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
