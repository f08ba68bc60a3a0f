import { FRAMES_PER_SECOND } from './framer.ts';

/** The service closes a stream with more than 5 s of unprocessed audio. */
const MAX_LEAD_FRAMES = 3 * FRAMES_PER_SECOND;
/** Assumed speed of the service between two events: twice real time. */
const ASSUMED_FRAMES_PER_SECOND = 2 * FRAMES_PER_SECOND;

/**
 * Estimates how many sent frames the service has not processed yet. Limits the frames that are sent at once after a
 * stall of the network or of the sender: too many would end the stream.
 */
export class Lead {
  private frames = 0;
  private asOfMs: number;

  /** @param nowMs a clock that never goes back */
  constructor(private readonly nowMs: () => number = () => performance.now()) {
    this.asOfMs = nowMs();
  }

  /** Whether the next frame must wait. */
  get isUsedUp(): boolean {
    return this.now() + 1 > MAX_LEAD_FRAMES;
  }

  add(frames: number): void {
    this.frames = this.now() + frames;
  }

  /** Records that this number of frames is still in the send buffer. */
  raiseTo(frames: number): void {
    this.frames = Math.max(this.now(), frames);
  }

  /** Records an event that shows how many frames are unprocessed at most. */
  limitTo(frames: number): void {
    this.frames = Math.min(this.now(), frames);
  }

  private now(): number {
    const nowMs = this.nowMs();
    const processed = (ASSUMED_FRAMES_PER_SECOND * (nowMs - this.asOfMs)) / 1000;
    this.frames = Math.max(0, this.frames - processed);
    this.asOfMs = nowMs;
    return this.frames;
  }
}
