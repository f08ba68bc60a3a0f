import { FRAMES_PER_SECOND } from './framer.ts';

/** Audio that may be under way, 3 s; the service closes a stream with more than 5 s that it has not processed. */
const MAX_LEAD_FRAMES = 3 * FRAMES_PER_SECOND;
/** What the service is taken to process while it tells nothing: twice real time. */
const UNHEARD_FRAMES_PER_SECOND = 2 * FRAMES_PER_SECOND;

/**
 * How far the frames of a stream are ahead of those that the service has processed, as far as can be known here. After a stall of
 * the network, or of the sender, all that had to wait would else come at once, and end the stream.
 */
export class Lead {
  private frames = 0;
  private asOfMs: number;

  /** @param nowMs a clock that never goes back */
  constructor(private readonly nowMs: () => number = () => performance.now()) {
    this.asOfMs = nowMs();
  }

  /** Whether the next frame has to wait. */
  get isUsedUp(): boolean {
    return this.now() + 1 > MAX_LEAD_FRAMES;
  }

  add(frames: number): void {
    this.frames = this.now() + frames;
  }

  /** So many have not left yet: nobody can have processed them. */
  isAtLeast(frames: number): void {
    this.frames = Math.max(this.now(), frames);
  }

  /** The service has told something that shows the others to be processed. */
  isAtMost(frames: number): void {
    this.frames = Math.min(this.now(), frames);
  }

  private now(): number {
    const nowMs = this.nowMs();
    const processed = (UNHEARD_FRAMES_PER_SECOND * (nowMs - this.asOfMs)) / 1000;
    this.frames = Math.max(0, this.frames - processed);
    this.asOfMs = nowMs;
    return this.frames;
  }
}
