import { FRAME_MS } from './live-frames.ts';
import { MAX_LATE_BACKLOG_MS } from './live-ports.ts';

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

/** Two times of a frame, by two clocks that advance by 100 ms a frame at least. */
export interface FrameTimes {
  /** When a client in real time would have sent it. Before now: the client is not ahead, however late it comes here. */
  readonly expectedAt: number;
  /** When it came, of a burst when its turn comes: from then on it waits for the service. */
  readonly dueAt: number;
}

/**
 * The frames of a stream against the clock. `expectedAt` counts frames from the first one on: a network or a thread
 * that stalls, and then delivers all at once, makes no client too fast. `dueAt` starts again with each frame that comes
 * late.
 */
export class Pace {
  #nextExpectedAt: number;
  #nextDueAt = 0;

  /** @param resumedFrom when the audio before the next frame came, in a stream that is resumed */
  constructor(resumedFrom?: number) {
    this.#nextExpectedAt = resumedFrom === undefined ? Number.POSITIVE_INFINITY : resumedFrom + FRAME_MS;
  }

  /** The frame that comes now. */
  next(now: number): FrameTimes {
    // The first frame begins the count. Time that a silent client saves up is bounded.
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
