/** Times of packets that differ from the count of samples by less are rounding and jitter: the count goes on. */
const TOLERANCE_SECONDS = 0.05;
/** A jump forward up to this is a pause and kept as silence; a longer one is another clock. */
export const MAX_GAP_SECONDS = 600;
/** A jump back up to this is an overlap, whose end is heard; a longer one is another clock. */
const MAX_OVERLAP_SECONDS = 1;
/** Overlaps of more than this part of the recording are a broken clock. */
const MAX_OVERLAP_PART = 0.01;
/** Jumps kept; in a file with more of them the rest of the times is not believed. */
const MAX_GAPS = 1024;

/** Counts samples, and jumps where the container's times do. */
export class Clock {
  position = 0;
  readonly gaps: number[] = [];
  gapSamples = 0;
  /** What the jumps back come to. */
  overlapSamples = 0;
  brokenTimes = 0;
  /** Position minus what the container says. */
  shift = 0;
  readonly toleranceSamples: number;
  #isStarted = false;
  #lastJumpBack = -1;
  /** Silence of short jumps forward: the times may take it back. */
  #shortGaps = 0;

  constructor(private readonly rateHz: number) {
    this.toleranceSamples = TOLERANCE_SECONDS * rateHz;
  }

  /** Whether no position from here on has been passed before a jump back. */
  get isAhead(): boolean {
    return this.position > this.#lastJumpBack;
  }

  /** Whether there were so many jumps that no more are looked at closely. */
  get isWorn(): boolean {
    return this.gaps.length >= 2 * MAX_GAPS || this.brokenTimes >= MAX_GAPS;
  }

  /** How far ahead of the count `stamp` is that holds for the packet after `samplesAhead` more samples. */
  offsetOf(stamp: number, samplesAhead = 0): number {
    return Math.round(stamp + this.shift - this.position) - samplesAhead;
  }

  /**
   * The times count `samples` too few for the packet behind which the clock stands, by nothing but rounding: they are believed to go on from there
   * as they did. Below 0 where they count too many.
   */
  slip(samples: number): void {
    this.shift += samples;
  }

  /** The jump that the container asks for when it says that the next packet begins at `stamp`, samples of its own clock; 0 for none. */
  jumpTo(stamp: number): number {
    if (!this.#isStarted) {
      this.shift = this.position - stamp;
      this.#isStarted = true;
      return 0;
    }
    const jump = this.offsetOf(stamp);
    return Math.abs(jump) <= this.toleranceSamples ? 0 : jump;
  }

  /** Follows a jump, or goes on counting where it is not believed. */
  jump(samples: number): void {
    if (samples === 0) return;
    const isBelieved =
      this.gaps.length < 2 * MAX_GAPS &&
      samples <= MAX_GAP_SECONDS * this.rateHz &&
      (samples > 0 || this.#isOverlap(-samples));
    if (!isBelieved) {
      this.shift -= samples;
      this.brokenTimes++;
      return;
    }
    this.gaps.push(this.position, samples);
    if (samples > 0) {
      this.gapSamples += samples;
      if (samples <= MAX_OVERLAP_SECONDS * this.rateHz) this.#shortGaps += samples;
    } else {
      this.#lastJumpBack = this.position;
      this.overlapSamples -= samples;
    }
    this.position += samples;
  }

  #isOverlap(samples: number): boolean {
    const longest = MAX_OVERLAP_SECONDS * this.rateHz;
    const inAll = this.overlapSamples + samples;
    const bound = longest + MAX_OVERLAP_PART * this.position + this.#shortGaps;
    return samples <= longest && samples <= this.position && inAll <= bound;
  }
}
