/** Milliseconds since the Unix epoch; inside the platform it moves on only with I/O. */
export const now = (): number => Date.now();

/** Waits at least that many milliseconds. */
export const sleep = (ms: number): Promise<void> => scheduler.wait(ms);

/** Gives other requests of the isolate a turn and lets the clock move on. */
export const pause = (): Promise<void> => scheduler.wait(0);
