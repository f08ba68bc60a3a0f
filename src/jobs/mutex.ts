/** A holder without a sign of life for this long was ended by the platform, or waits for a slow source. */
const STALE_MS = 120_000;
/**
 * Interval in which a waiting call checks whether the holder, or a call ahead of it, was ended by the platform. The end
 * of a turn wakes the next call at once.
 */
const CHECK_MS = 5000;
/** A waiting call without a check for this long was ended by the platform: nothing holds the thread for as long. */
const GONE_MS = 4 * CHECK_MS;
/**
 * Urgent calls overtake calls that came at most this much earlier, and no older ones, so that long jobs get their turn.
 */
const HEAD_START_MS = 60_000;

/** Thrown into work that gave no sign of life for `STALE_MS` and lost its turn to another call. */
export class TurnLost extends Error {
  constructor() {
    super('another analysis took the turn of this one, which was silent for too long');
    this.name = 'TurnLost';
  }
}

interface Waiting {
  /** Time of arrival, minus the head start of an urgent call; milliseconds since the Unix epoch. */
  readonly rank: number;
  checkedAt: number;
  wake: () => void;
}

export interface TurnOptions {
  /** Goes before calls that are not urgent. */
  readonly isUrgent?: boolean;
  /** Called every few seconds while waiting; may throw to give up. */
  readonly whileWaiting?: () => Promise<void>;
  readonly sleep: (ms: number) => Promise<void>;
}

/**
 * One analysis at a time in an isolate: a shard in work holds tens of megabytes, and the isolate has one thread anyway.
 * Calls get their turn in order. An invocation that the platform ends runs no `finally`, so a call without signs of
 * life loses its turn or its place in the order.
 */
export class Mutex {
  #holder: { beatAt: number } | undefined;
  readonly #waiting: Waiting[] = [];

  /** @param now milliseconds since the Unix epoch */
  constructor(private readonly now: () => number = Date.now) {}

  /**
   * @param work calls the function that it is given between its units, as a sign of life
   * @throws TurnLost from that function
   */
  async run<T>(options: TurnOptions, work: (beat: () => void) => Promise<T>): Promise<T> {
    const own = await this.#take(options);
    try {
      return await work(() => {
        if (this.#holder !== own) throw new TurnLost();
        own.beatAt = this.now();
      });
    } finally {
      if (this.#holder === own) {
        this.#holder = undefined;
        this.#next()?.wake();
      }
    }
  }

  async #take({ isUrgent = false, whileWaiting, sleep }: TurnOptions): Promise<{ beatAt: number }> {
    const now = this.now();
    const own: Waiting = { rank: isUrgent ? now - HEAD_START_MS : now, checkedAt: now, wake: () => undefined };
    const after = this.#waiting.findIndex(({ rank }) => rank > own.rank);
    this.#waiting.splice(after < 0 ? this.#waiting.length : after, 0, own);
    try {
      while (this.#isHeld || this.#next() !== own) {
        const isWoken = new Promise<void>((done) => {
          own.wake = done;
        });
        await Promise.race([isWoken, sleep(CHECK_MS)]);
        own.checkedAt = this.now();
        await whileWaiting?.();
      }
      this.#holder = { beatAt: this.now() };
      return this.#holder;
    } finally {
      this.#waiting.splice(this.#waiting.indexOf(own), 1);
      // A call that was woken may have given up since.
      if (!this.#isHeld) this.#next()?.wake();
    }
  }

  get #isHeld(): boolean {
    return this.#holder !== undefined && this.now() - this.#holder.beatAt < STALE_MS;
  }

  /** The first in the order that was not cut off. */
  #next(): Waiting | undefined {
    return this.#waiting.find(({ checkedAt }) => this.now() - checkedAt < GONE_MS);
  }
}
