/** Milliseconds since the Unix epoch; inside the platform it moves on only with I/O. */
export const now = (): number => Date.now();

/** Waits at least that many milliseconds. */
export const sleep = (ms: number): Promise<void> => scheduler.wait(ms);

/** Work that held the thread for this long has delayed other requests. */
const HELD_MS = 40;
/** Long enough for all steps of a request, each of which takes a turn of the event loop; 1 % of a model run. */
const CATCH_UP_MS = 2;

let resumedAt = 0;

/**
 * Yields to other requests of the isolate and lets the clock move on. After long work they get 2 ms: with a single turn
 * of the event loop, each step of a request, such as a database's answer, would wait for another model run.
 */
export async function pause(): Promise<void> {
  await scheduler.wait(0);
  if (Date.now() - resumedAt >= HELD_MS) await scheduler.wait(CATCH_UP_MS);
  resumedAt = Date.now();
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
