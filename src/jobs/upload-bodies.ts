const CHECK_EVERY_MS = 1000;
const MINUTE_MS = 60_000;

/** Limits for the sender of a body. Only the time during which a read waits for bytes counts. */
export interface ReadLimits {
  /** Maximum pause, milliseconds. */
  readonly pauseMs: number;
  /** Maximum time for the whole body, milliseconds. */
  readonly totalMs?: number;
  /** Minimum number of bytes per minute. */
  readonly minBytesPerMinute?: number;
}

export class TooSlow extends Error {}

/**
 * Reads a body whose sender may stall or be slow, so that its memory is not held without limit. Cancels the body when
 * it exceeds the limits.
 */
export class LimitedReader {
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
    private readonly limits: ReadLimits,
    private readonly now: () => number = Date.now,
  ) {
    this.#reader = body.getReader();
    this.#timer = setInterval(() => this.#check(), CHECK_EVERY_MS);
  }

  /** @throws TooSlow if the sender exceeds the limits; errors of the stream */
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

  /** Releases the body, whether read to its end or not. */
  close(): void {
    clearInterval(this.#timer);
    if (!this.#isTooSlow) this.#reader.releaseLock();
  }

  #check(): void {
    if (this.#waitsSince === undefined) return;
    const { pauseMs, totalMs = Number.POSITIVE_INFINITY, minBytesPerMinute = 0 } = this.limits;
    const waitsMs = this.now() - this.#waitsSince;
    const isMinuteOver = this.#minuteMs + waitsMs >= MINUTE_MS;
    const isTooFewBytes = isMinuteOver && this.#minuteBytes < minBytesPerMinute;
    if (waitsMs >= pauseMs || this.#waitedMs + waitsMs >= totalMs || isTooFewBytes) {
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
 * An invocation that the platform ends releases nothing. A slot counts as free after this time without a renewal, which
 * is longer than any request, or any span between renewals of a long one.
 */
const STALE_MS = 3 * 60_000;

/** Permission to hold a large part of the isolate's memory; released when the memory is free again. */
export interface Slot {
  /** Extends the slot, which is still in use. */
  renew(): void;
  release(): void;
}

/**
 * Number of slots in an isolate, and the maximum for one account, so that no account alone can block the others.
 */
export interface SlotLimits {
  readonly slots: number;
  readonly perAccount: number;
}

/** The slots of one isolate for one purpose. */
export class Slots {
  readonly #holders = new Map<Slot, { readonly accountId: string; usedAt: number }>();

  /**
   * @param now milliseconds since the Unix epoch
   * @param sleep waits that many milliseconds. `take` polls: the platform ties a promise to the request that made it
   */
  constructor(
    private readonly bounds: SlotLimits,
    private readonly now: () => number = () => Date.now(),
    private readonly sleep: (ms: number) => Promise<void> = (ms) => new Promise((done) => setTimeout(done, ms)),
  ) {}

  /** @returns undefined if no slot became free within 20 s */
  async take(accountId: string): Promise<Slot | undefined> {
    const giveUpAt = this.now() + MAX_WAIT_MS;
    while (this.#isTaken(accountId)) {
      if (this.now() >= giveUpAt) return undefined;
      await this.sleep(POLL_MS);
    }
    const holder = { accountId, usedAt: this.now() };
    const slot: Slot = {
      renew: () => {
        holder.usedAt = this.now();
      },
      release: () => void this.#holders.delete(slot),
    };
    this.#holders.set(slot, holder);
    return slot;
  }

  #isTaken(accountId: string): boolean {
    let own = 0;
    for (const [slot, holder] of this.#holders) {
      if (this.now() - holder.usedAt >= STALE_MS) this.#holders.delete(slot);
      else if (holder.accountId === accountId) own++;
    }
    return own >= this.bounds.perAccount || this.#holders.size >= this.bounds.slots;
  }
}
