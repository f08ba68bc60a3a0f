import { FRAME_MS } from './live-frames.ts';
import { MAX_LATE_BACKLOG_MS } from './live-ports.ts';

/** Time constant of the mean lag. */
const TIME_CONSTANT_MS = 3000;
/** Mean lag above which the isolate is overloaded; normally a frame waits some tens of milliseconds. */
const MAX_LAG_MS = 2500;
/** Without a processed frame for this long, the isolate counts as idle. */
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
    const weight = 1 - Math.exp(-Math.min(now - this.#notedAt, TIME_CONSTANT_MS) / TIME_CONSTANT_MS);
    this.#lagMs += weight * (lagMs - this.#lagMs);
    this.#notedAt = now;
  }

  /** Records the size of a stream's queue. */
  noteQueue(stream: symbol, bytes: number, now: number): void {
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

/** Times of a frame, in milliseconds since the Unix epoch. Each advances by at least 100 ms per frame. */
export interface FrameTimes {
  /** When a client in real time would have sent the frame. Later than now: the client is ahead of real time. */
  readonly expectedAt: number;
  /** When the frame arrived; in a burst, 100 ms after the frame before. From then on it waits for the service. */
  readonly dueAt: number;
}

/**
 * Assigns times to the frames of a stream. `expectedAt` counts frames from the first one on, so that a client is not
 * too fast if a network or thread stalls and then delivers many frames at once. `dueAt` restarts with each late frame.
 */
export class Pace {
  #nextExpectedAt: number;
  #nextDueAt = 0;

  /** @param resumedFrom when the frame before the next one arrived, for a stream that is resumed */
  constructor(resumedFrom?: number) {
    this.#nextExpectedAt = resumedFrom === undefined ? Number.POSITIVE_INFINITY : resumedFrom + FRAME_MS;
  }

  /** Times of the frame that arrives now. */
  next(now: number): FrameTimes {
    // The first frame begins the count. A silent client may catch up by a bounded time only.
    const isFirst = this.#nextExpectedAt === Number.POSITIVE_INFINITY;
    const expectedAt = isFirst ? now : Math.max(this.#nextExpectedAt, now - MAX_LATE_BACKLOG_MS);
    const dueAt = Math.max(this.#nextDueAt, now);
    this.#nextExpectedAt = expectedAt + FRAME_MS;
    this.#nextDueAt = dueAt + FRAME_MS;
    return { expectedAt, dueAt };
  }
}

/** Lag of a stream's processed frames: from the time at which a frame was due to the end of its processing. */
export interface LagReport {
  readonly frames: number;
  readonly meanLagMs: number;
  readonly maxLagMs: number;
}

/** Collects the lag of a stream's frames between two log lines. */
export class LagMeter {
  #frames = 0;
  #sumMs = 0;
  #maxMs = 0;

  note(lagMs: number): void {
    this.#frames++;
    this.#sumMs += lagMs;
    this.#maxMs = Math.max(this.#maxMs, lagMs);
  }

  /** Reports the frames since the last call; undefined without any. */
  take(): LagReport | undefined {
    if (this.#frames === 0) return undefined;
    const report = { frames: this.#frames, meanLagMs: Math.round(this.#sumMs / this.#frames), maxLagMs: this.#maxMs };
    this.#frames = this.#sumMs = this.#maxMs = 0;
    return report;
  }
}
