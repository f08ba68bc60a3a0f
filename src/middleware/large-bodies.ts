/** Bodies from this size on take turns: only those with a recording inside are so large. */
export const LARGE_BODY_BYTES = 1024 * 1024;
/** One is parsed while the next one comes: some 35 MB and 12 MB, beside what a job in the same isolate holds. */
const PLACES = 2;
/** How long a body may come once it has a place: 8 MiB of audio at 1.5 Mbit/s. */
export const LARGE_BODY_MS = 60_000;
const MAX_WAIT_MS = 20_000;
const POLL_MS = 50;
/** An invocation that the platform ends gives nothing back: a place is free again after as long as any request may take. */
const STALE_MS = 3 * 60_000;

/** A place in the isolate for one large body; given back when its request has been answered. */
export interface Place {
  release(): void;
}

/** The places of one isolate. A request of 12 MiB holds three times as much while it is parsed, and an isolate has 128 MB for all. */
export class LargeBodies {
  readonly #holders = new Map<object, number>();

  /**
   * @param now milliseconds since the Unix epoch
   * @param sleep waits that many milliseconds. Polled, because the platform ties promises to the request that made them
   */
  constructor(
    private readonly now: () => number = Date.now,
    private readonly sleep: (ms: number) => Promise<void> = (ms) => new Promise((done) => setTimeout(done, ms)),
  ) {}

  /** @returns undefined when no place became free in 20 s */
  async place(): Promise<Place | undefined> {
    const giveUpAt = this.now() + MAX_WAIT_MS;
    while (this.#taken() >= PLACES) {
      if (this.now() >= giveUpAt) return undefined;
      await this.sleep(POLL_MS);
    }
    const place: Place = { release: () => void this.#holders.delete(place) };
    this.#holders.set(place, this.now());
    return place;
  }

  #taken(): number {
    for (const [holder, since] of this.#holders) {
      if (this.now() - since >= STALE_MS) this.#holders.delete(holder);
    }
    return this.#holders.size;
  }
}

/** Those of this isolate. */
export const largeBodies = new LargeBodies();
