import { FRAME_MS } from './frames.ts';

/** When a frame should have come at the latest from a client that sends in real time. */
export interface Due {
  readonly dueAt: number;
  /** Part of what a resumed stream sends again: such a frame waits for the client's sake, and tells nothing of the load. */
  readonly isCatchingUp: boolean;
}

/**
 * The frames of a stream against the clock: a frame is due when it comes, but no sooner than 100 ms after the one before.
 * Of what waits, frames that are not due yet wait since the client is ahead of real time, the others since they are
 * processed too slowly.
 */
export class Pace {
  #next: number;
  #isCatchingUp: boolean;

  /** @param resumedFrom when the audio before the next frame came, in a stream that is resumed: what came since is due */
  constructor(resumedFrom?: number) {
    this.#isCatchingUp = resumedFrom !== undefined;
    this.#next = resumedFrom === undefined ? 0 : resumedFrom + FRAME_MS;
  }

  /** The frame that comes now. */
  next(now: number): Due {
    if (this.#next >= now) this.#isCatchingUp = false;
    const dueAt = this.#isCatchingUp ? this.#next : Math.max(this.#next, now);
    this.#next = dueAt + FRAME_MS;
    return { dueAt, isCatchingUp: this.#isCatchingUp };
  }
}
