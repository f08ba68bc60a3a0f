const POLL_MS = 50;
/** A load that takes longer was cut off with the request that had begun it. */
const STALE_MS = 30_000;

/**
 * Something that an isolate loads once for all its requests. The value is shared, the promise is not: it would never
 * settle for the others where the platform ends the request that had begun the load. Those who come meanwhile look
 * again every 50 ms. The next call repeats a load that failed.
 */
export class Loaded<T> {
  #value: { readonly of: T } | undefined;
  #loading: { readonly since: number } | undefined;

  /** @param now milliseconds since the Unix epoch */
  constructor(private readonly now: () => number = Date.now) {}

  /** @throws what `load` throws, to the one who began it */
  async get(load: () => Promise<T>): Promise<T> {
    while (!this.#value && this.#loading && this.now() - this.#loading.since < STALE_MS) {
      await new Promise<void>((wake) => setTimeout(wake, POLL_MS));
    }
    if (this.#value) return this.#value.of;
    const own = { since: this.now() };
    this.#loading = own;
    try {
      const of = await load();
      this.#value ??= { of };
      return this.#value.of;
    } finally {
      if (this.#loading === own) this.#loading = undefined;
    }
  }
}
