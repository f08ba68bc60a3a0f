const POLL_MS = 100;
/** A holder that gives no sign of life for so long was cut off by the platform, or waits for a source that hardly sends. */
const STALE_MS = 120_000;

/** Thrown out of work that was silent for so long that somebody else has taken its turn. */
export class TurnLost extends Error {
  constructor() {
    super('another analysis has taken the place of this one, which was silent for too long');
    this.name = 'TurnLost';
  }
}

/**
 * One analysis at a time in an isolate: a shard in work holds tens of megabytes, and the isolate has one thread anyway.
 * Waiting calls keep their message's lease alive through `pulse`. An invocation that the platform ends runs no `finally`, so that a turn is
 * not held until it is given back, but as long as its holder gives signs of life.
 */
export class Mutex {
  #holder: { beatAt: number } | undefined;

  /** @param now milliseconds since the Unix epoch */
  constructor(private readonly now: () => number = Date.now) {}

  /**
   * @param pulse called about ten times a second while waiting; may throw to give up
   * @param sleep waits that many milliseconds. Polled, because the platform ties promises to the request that made them
   * @param work calls the pulse that it is given between its units, as a sign of life
   * @throws TurnLost from that pulse
   */
  async run<T>(
    pulse: () => Promise<void>,
    sleep: (ms: number) => Promise<void>,
    work: (pulse: () => Promise<void>) => Promise<T>,
  ): Promise<T> {
    while (this.#holder && this.now() - this.#holder.beatAt < STALE_MS) {
      await sleep(POLL_MS);
      await pulse();
    }
    const own = { beatAt: this.now() };
    this.#holder = own;
    try {
      return await work(async () => {
        if (this.#holder !== own) throw new TurnLost();
        own.beatAt = this.now();
        await pulse();
      });
    } finally {
      if (this.#holder === own) this.#holder = undefined;
    }
  }
}
