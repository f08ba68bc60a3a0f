const MAX_ENTRIES = 1000;
/** A read that takes longer than this is no longer waited for by others. */
const READ_TIMEOUT_MS = 5000;

interface Entry<T> {
  readonly value: T;
  readonly readAt: number;
  /** When somebody began to read anew. */
  readingSince?: number;
}

/**
 * What many callers of one isolate ask for again and again, read about once in `maxAgeMs` for all of them. Values are shared,
 * promises are not: the platform ties those to the request that made them.
 */
export class SharedReads<T> {
  readonly #entries = new Map<string, Entry<T>>();

  constructor(
    readonly maxAgeMs: number,
    readonly now: () => number,
  ) {}

  /** A value that is at most `maxAgeMs` old, or the one before while another caller is reading. */
  async get(key: string, read: () => Promise<T>): Promise<T> {
    const entry = this.#entries.get(key);
    const now = this.now();
    if (entry) {
      const isFresh = now - entry.readAt < this.maxAgeMs;
      const isBeingRead = entry.readingSince !== undefined && now - entry.readingSince < READ_TIMEOUT_MS;
      if (isFresh || isBeingRead) return entry.value;
      entry.readingSince = now;
    }
    const value = await read();
    this.#entries.delete(key);
    this.#entries.set(key, { value, readAt: this.now() });
    // Maps keep the order of insertion: the first is the one that was read longest ago.
    const [oldest] = this.#entries.keys();
    if (this.#entries.size > MAX_ENTRIES && oldest !== undefined) this.#entries.delete(oldest);
    return value;
  }
}
