const LOOK_EVERY_MS = 1000;
const MINUTE_MS = 60_000;

/** How slow the sender of a body may be. Only the time counts in which its bytes are waited for. */
export interface Patience {
  /** The longest pause, milliseconds. */
  readonly pauseMs: number;
  /** The longest time for all of it, milliseconds. */
  readonly totalMs?: number;
  /** The fewest bytes in a minute. */
  readonly minBytesPerMinute?: number;
}

export class TooSlow extends Error {}

/**
 * Reads a body whose sender may stop or drip: who holds memory for it must be rid of it some time. A body that is given
 * up is cancelled.
 */
export class PatientReader {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #timer: ReturnType<typeof setInterval>;
  #waitsSince: number | undefined;
  #waitedMs = 0;
  #minuteMs = 0;
  #minuteBytes = 0;
  #isTooSlow = false;

  /** @param now milliseconds since the Unix epoch */
  constructor(
    body: ReadableStream<Uint8Array>,
    private readonly patience: Patience,
    private readonly now: () => number = Date.now,
  ) {
    this.#reader = body.getReader();
    this.#timer = setInterval(() => this.#look(), LOOK_EVERY_MS);
  }

  /** @throws TooSlow for a sender that is too slow, and what the stream fails with */
  async read(): Promise<Uint8Array | undefined> {
    if (this.#isTooSlow) throw new TooSlow();
    this.#waitsSince = this.now();
    try {
      const { done, value } = await this.#reader.read();
      if (this.#isTooSlow) throw new TooSlow();
      this.#minuteBytes += value?.length ?? 0;
      return done ? undefined : value;
    } catch (error) {
      throw this.#isTooSlow ? new TooSlow() : error;
    } finally {
      const waitedMs = this.now() - this.#waitsSince;
      this.#waitsSince = undefined;
      this.#waitedMs += waitedMs;
      this.#minuteMs += waitedMs;
    }
  }

  /** Restarts the time limit: the time until now was partly spent waiting for something else. */
  restart(): void {
    this.#waitedMs = 0;
  }

  /** Gives the body back, read or not. */
  close(): void {
    clearInterval(this.#timer);
    if (!this.#isTooSlow) this.#reader.releaseLock();
  }

  #look(): void {
    if (this.#waitsSince === undefined) return;
    const { pauseMs, totalMs = Number.POSITIVE_INFINITY, minBytesPerMinute = 0 } = this.patience;
    const waitsMs = this.now() - this.#waitsSince;
    const isMinuteOver = this.#minuteMs + waitsMs >= MINUTE_MS;
    const isDripping = isMinuteOver && this.#minuteBytes < minBytesPerMinute;
    if (waitsMs >= pauseMs || this.#waitedMs + waitsMs >= totalMs || isDripping) {
      this.#isTooSlow = true;
      clearInterval(this.#timer);
      void this.#reader.cancel().catch(() => undefined);
    } else if (isMinuteOver) {
      this.#minuteMs = -waitsMs;
      this.#minuteBytes = 0;
    }
  }
}

const MAX_WAIT_MS = 20_000;
const POLL_MS = 50;
/**
 * An invocation that the platform ends gives nothing back: a place is free again after as long as any request may take,
 * or any piece of a long one.
 */
const STALE_MS = 3 * 60_000;

/** A place in the isolate for what fills its memory; given back when it does so no longer. */
export interface Place {
  /** Says that it is still in use. */
  renew(): void;
  release(): void;
}

/**
 * Number of places in an isolate, and the maximum for one account: no account is kept out by one other
 * alone.
 */
export interface PlaceBounds {
  readonly places: number;
  readonly perAccount: number;
}

/** The places of one isolate, of one kind. */
export class Places {
  readonly #holders = new Map<Place, { readonly accountId: string; usedAt: number }>();

  /**
   * @param now milliseconds since the Unix epoch
   * @param sleep waits that many milliseconds. Polled, because the platform ties promises to the request that made them
   */
  constructor(
    private readonly bounds: PlaceBounds,
    private readonly now: () => number = () => Date.now(),
    private readonly sleep: (ms: number) => Promise<void> = (ms) => new Promise((done) => setTimeout(done, ms)),
  ) {}

  /** @returns undefined when no place became free in 20 s */
  async take(accountId: string): Promise<Place | undefined> {
    const giveUpAt = this.now() + MAX_WAIT_MS;
    while (this.#isTaken(accountId)) {
      if (this.now() >= giveUpAt) return undefined;
      await this.sleep(POLL_MS);
    }
    const holder = { accountId, usedAt: this.now() };
    const place: Place = {
      renew: () => {
        holder.usedAt = this.now();
      },
      release: () => void this.#holders.delete(place),
    };
    this.#holders.set(place, holder);
    return place;
  }

  #isTaken(accountId: string): boolean {
    let own = 0;
    for (const [place, holder] of this.#holders) {
      if (this.now() - holder.usedAt >= STALE_MS) this.#holders.delete(place);
      else if (holder.accountId === accountId) own++;
    }
    return own >= this.bounds.perAccount || this.#holders.size >= this.bounds.places;
  }
}
