import { FRAME_MS } from './frames.ts';
import { MAX_LATE_BACKLOG_MS } from './limits.ts';

/** Two times of a frame, by two clocks that advance by 100 ms a frame at least. */
export interface FrameTimes {
  /** When a client in real time would have sent it. Before now: the client is not ahead, however late it comes here. */
  readonly expectedAt: number;
  /** When it came, of a burst when its turn comes: from then on it waits for the service. */
  readonly dueAt: number;
}

/**
 * The frames of a stream against the clock. `expectedAt` counts frames from the first one on: a network or a thread that
 * stalls, and then delivers all at once, makes no client too fast. `dueAt` begins anew with each frame that comes late.
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
