const POLL_MS = 50;
/** A load that takes longer was ended by the platform with the request that began it. */
const STALE_MS = 30_000;

/**
 * A value that an isolate loads once for all its requests. The value is shared but not the promise, which would never
 * settle if the platform ended the request that began the load. Concurrent calls poll every 50 ms. The next call
 * repeats a failed load.
 */
export class Loaded<T> {
  #loaded: { readonly value: T } | undefined;
  #loading: { readonly since: number } | undefined;

  /** @param now milliseconds since the Unix epoch */
  constructor(private readonly now: () => number = Date.now) {}

  /** @throws errors of `load`, to the call that began it */
  async get(load: () => Promise<T>): Promise<T> {
    while (!this.#loaded && this.#loading && this.now() - this.#loading.since < STALE_MS) {
      await new Promise<void>((wake) => setTimeout(wake, POLL_MS));
    }
    if (this.#loaded) return this.#loaded.value;
    const own = { since: this.now() };
    this.#loading = own;
    try {
      const value = await load();
      this.#loaded ??= { value };
      return this.#loaded.value;
    } finally {
      if (this.#loading === own) this.#loading = undefined;
    }
  }
}
