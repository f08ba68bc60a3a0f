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
 * How many places there are in an isolate, and how many of them one account may have: nobody is kept out by one other
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
