const POLL_MS = 100;

/**
 * One analysis at a time in an isolate: a shard in work holds tens of megabytes, and the isolate has one thread anyway.
 * Waiting calls keep their message's lease alive through `pulse`.
 */
export class Mutex {
  #locked = false;

  /**
   * @param pulse called about ten times a second while waiting; may throw to give up
   * @param sleep waits that many milliseconds. Polled, because the platform ties promises to the request that made them
   */
  async run<T>(pulse: () => Promise<void>, sleep: (ms: number) => Promise<void>, work: () => Promise<T>): Promise<T> {
    while (this.#locked) {
      await sleep(POLL_MS);
      await pulse();
    }
    this.#locked = true;
    try {
      return await work();
    } finally {
      this.#locked = false;
    }
  }
}
