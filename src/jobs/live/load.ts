/** Time constant of the mean lag. */
const MEMORY_MS = 3000;
/** Beyond this the isolate does not follow its streams: where it does a frame waits some tens of milliseconds. */
const MAX_LAG_MS = 2500;
/** Without frames there is no load. */
const STALE_MS = 5000;
/** A queue without a change for this long belongs to an object that the platform has reset. */
const FORGOTTEN_MS = 120_000;

/** Lag behind real time of the live streams of an isolate, which share its thread. */
export class LiveLoad {
  readonly #waiting = new Map<symbol, { readonly bytes: number; readonly at: number }>();
  #lagMs = 0;
  #notedAt = Number.NEGATIVE_INFINITY;

  /** Records a processed frame. @param lagMs time since it was due; 0 for a frame ahead of real time */
  note(lagMs: number, now: number): void {
    if (now - this.#notedAt > STALE_MS) this.#lagMs = 0;
    const weight = 1 - Math.exp(-Math.min(now - this.#notedAt, MEMORY_MS) / MEMORY_MS);
    this.#lagMs += weight * (lagMs - this.#lagMs);
    this.#notedAt = now;
  }

  /** Records the size of a stream's queue. */
  waits(stream: symbol, bytes: number, now: number): void {
    if (bytes === 0) this.#waiting.delete(stream);
    else this.#waiting.set(stream, { bytes, at: now });
  }

  /** Bytes in the queues of all streams. */
  waitingBytes(now: number): number {
    let sum = 0;
    for (const [stream, { bytes, at }] of this.#waiting) {
      if (now - at > FORGOTTEN_MS) this.#waiting.delete(stream);
      else sum += bytes;
    }
    return sum;
  }

  /** Whether the running streams lag too much to accept another one. */
  isOverloaded(now: number): boolean {
    return now - this.#notedAt <= STALE_MS && this.#lagMs > MAX_LAG_MS;
  }
}
