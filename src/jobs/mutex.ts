/** A holder that gives no sign of life for so long was cut off by the platform, or waits for a source that hardly sends. */
const STALE_MS = 120_000;
/**
 * A waiting call looks this often by itself: for a holder or a call before it that was cut off. Otherwise the end of the
 * turn wakes it.
 */
const LOOK_MS = 5000;
/** A waiting call that has not looked for so long was cut off: the thread is never held for more than a moment. */
const GONE_MS = 4 * LOOK_MS;
/**
 * Urgent calls go before others that came up to so much earlier. The others still get their turn: nobody is overtaken by
 * what comes later than that.
 */
const HEAD_START_MS = 60_000;

/** Thrown out of work that was silent for so long that another call has taken its turn. */
export class TurnLost extends Error {
  constructor() {
    super('another analysis has taken the place of this one, which was silent for too long');
    this.name = 'TurnLost';
  }
}

interface Waiting {
  /** When it came; earlier for an urgent one. */
  readonly rank: number;
  lookedAt: number;
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
 * Calls get their turn in order. An invocation that the platform ends runs no `finally`: a turn, and a place in the
 * order, is kept only by signs of life.
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
    const own: Waiting = { rank: isUrgent ? now - HEAD_START_MS : now, lookedAt: now, wake: () => undefined };
    const after = this.#waiting.findIndex(({ rank }) => rank > own.rank);
    this.#waiting.splice(after < 0 ? this.#waiting.length : after, 0, own);
    try {
      while (this.#isHeld || this.#next() !== own) {
        const isWoken = new Promise<void>((done) => {
          own.wake = done;
        });
        await Promise.race([isWoken, sleep(LOOK_MS)]);
        own.lookedAt = this.now();
        await whileWaiting?.();
      }
      this.#holder = { beatAt: this.now() };
      return this.#holder;
    } finally {
      this.#waiting.splice(this.#waiting.indexOf(own), 1);
      // It may have been woken, and given up.
      if (!this.#isHeld) this.#next()?.wake();
    }
  }

  get #isHeld(): boolean {
    return this.#holder !== undefined && this.now() - this.#holder.beatAt < STALE_MS;
  }

  /** The first in the order that was not cut off. */
  #next(): Waiting | undefined {
    return this.#waiting.find(({ lookedAt }) => this.now() - lookedAt < GONE_MS);
  }
}
