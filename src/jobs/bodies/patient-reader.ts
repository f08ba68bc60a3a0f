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
 * Reads a body whose sender may stop or drip: who holds memory for it must be rid of it some time. A body that is given up is cancelled.
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

  /** Starts the time for all of it anew: what came so far was waited for, and then something else. */
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
