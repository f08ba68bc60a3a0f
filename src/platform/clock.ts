/** Milliseconds since the Unix epoch; inside the platform it moves on only with I/O. */
export const now = (): number => Date.now();

/** Waits at least that many milliseconds. */
export const sleep = (ms: number): Promise<void> => scheduler.wait(ms);

/** Gives other requests of the isolate a turn and lets the clock move on. */
export const pause = (): Promise<void> => scheduler.wait(0);

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
