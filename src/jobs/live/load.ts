/** The mean lag forgets a frame within a few of these. */
const MEMORY_MS = 3000;
/** Beyond this the isolate does not follow its streams: where it does a frame waits some tens of milliseconds. */
const MAX_LAG_MS = 2500;
/** Without frames there is no load. */
const STALE_MS = 5000;
/** A queue that did not change for so long is of nobody any more. */
const FORGOTTEN_MS = 120_000;

/** How far the live streams of an isolate, which share its thread, are behind real time. */
export class LiveLoad {
  readonly #waiting = new Map<symbol, { readonly bytes: number; readonly at: number }>();
  #lagMs = 0;
  #notedAt = Number.NEGATIVE_INFINITY;

  /** A frame has been processed that was due so long ago; one that was not due yet counts 0. */
  note(lagMs: number, now: number): void {
    if (now - this.#notedAt > STALE_MS) this.#lagMs = 0;
    const weight = 1 - Math.exp(-Math.min(now - this.#notedAt, MEMORY_MS) / MEMORY_MS);
    this.#lagMs += weight * (Math.max(0, lagMs) - this.#lagMs);
    this.#notedAt = now;
  }

  /** So much waits in the queue of a stream. */
  waits(stream: symbol, bytes: number, now: number): void {
    if (bytes === 0) this.#waiting.delete(stream);
    else this.#waiting.set(stream, { bytes, at: now });
  }

  /** What waits in the queues of all streams. */
  waitingBytes(now: number): number {
    let sum = 0;
    for (const [stream, { bytes, at }] of this.#waiting) {
      // An object that the platform reset took its queue with it.
      if (now - at > FORGOTTEN_MS) this.#waiting.delete(stream);
      else sum += bytes;
    }
    return sum;
  }

  /** Whether another stream would make those that run fall (further) behind. */
  isOverloaded(now: number): boolean {
    return now - this.#notedAt <= STALE_MS && this.#lagMs > MAX_LAG_MS;
  }
}
