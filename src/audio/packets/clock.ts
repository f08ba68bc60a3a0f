/** Times of packets that differ from the count of samples by less are rounding and jitter: the count continues. */
const TOLERANCE_SECONDS = 0.05;
/** A jump forward up to this is a pause and kept as silence; a longer one is another clock. */
export const MAX_GAP_SECONDS = 600;
/** A jump back up to this is an overlap, whose end is heard; a longer one is another clock. */
const MAX_OVERLAP_SECONDS = 1;
/** Overlaps of more than this part of the recording are a broken clock. */
const MAX_OVERLAP_PART = 0.01;
/** Jumps followed; in a file with more of them the rest of the times is not believed. */
const MAX_GAPS = 1024;

/** All that a clock knows. Plain JSON. */
export interface ClockState {
  /** Samples counted, pauses included. */
  position: number;
  /** Position minus what the container says. */
  shift: number;
  isStarted: boolean;
  /** Jumps that were followed. */
  gaps: number;
  gapSamples: number;
  /** What the jumps back come to. */
  overlapSamples: number;
  /** Jumps that were not followed. */
  brokenTimes: number;
  lastJumpBack: number;
  /** Silence of short jumps forward: the times may take it back. */
  shortGaps: number;
}

/** Counts samples, and jumps where the container's times do. */
export class Clock {
  readonly state: ClockState;
  readonly toleranceSamples: number;

  constructor(
    private readonly rateHz: number,
    state?: ClockState,
  ) {
    this.toleranceSamples = TOLERANCE_SECONDS * rateHz;
    this.state = state
      ? { ...state }
      : {
          position: 0,
          shift: 0,
          isStarted: false,
          gaps: 0,
          gapSamples: 0,
          overlapSamples: 0,
          brokenTimes: 0,
          lastJumpBack: -1,
          shortGaps: 0,
        };
  }

  get position(): number {
    return this.state.position;
  }

  /** Whether no position from here on has been passed before a jump back. */
  get isAhead(): boolean {
    return this.state.position > this.state.lastJumpBack;
  }

  /** Whether there were so many jumps that no more are looked at closely. */
  get hasTooManyJumps(): boolean {
    return this.state.gaps >= MAX_GAPS || this.state.brokenTimes >= MAX_GAPS;
  }

  /** A packet of so many samples. */
  pass(samples: number): void {
    this.state.position += samples;
  }

  /** How far ahead of the count `stamp` is that holds for the packet after `samplesAhead` more samples. */
  offsetOf(stamp: number, samplesAhead = 0): number {
    return Math.round(stamp + this.state.shift - this.state.position) - samplesAhead;
  }

  /**
   * The times count `samples` too few for the packet after which the clock stands, by nothing but rounding: they are
   * believed to continue from there as they did. Below 0 where they count too many.
   */
  slip(samples: number): void {
    this.state.shift += samples;
  }

  /**
   * The jump that the container asks for when it says that the next packet begins at `stamp`, samples of its own clock;
   * 0 for none.
   */
  jumpTo(stamp: number): number {
    const { state } = this;
    if (!state.isStarted) {
      state.shift = state.position - stamp;
      state.isStarted = true;
      return 0;
    }
    const jump = this.offsetOf(stamp);
    return Math.abs(jump) <= this.toleranceSamples ? 0 : jump;
  }

  /** Follows a jump, or continues counting where it is not believed. */
  jump(samples: number): void {
    if (samples === 0) return;
    const { state } = this;
    const isBelieved =
      state.gaps < MAX_GAPS && samples <= MAX_GAP_SECONDS * this.rateHz && (samples > 0 || this.#isOverlap(-samples));
    if (!isBelieved) {
      state.shift -= samples;
      state.brokenTimes++;
      return;
    }
    state.gaps++;
    if (samples > 0) {
      state.gapSamples += samples;
      if (samples <= MAX_OVERLAP_SECONDS * this.rateHz) state.shortGaps += samples;
    } else {
      state.lastJumpBack = state.position;
      state.overlapSamples -= samples;
    }
    state.position += samples;
  }

  #isOverlap(samples: number): boolean {
    const { position, overlapSamples, shortGaps } = this.state;
    const longest = MAX_OVERLAP_SECONDS * this.rateHz;
    const bound = longest + MAX_OVERLAP_PART * position + shortGaps;
    return samples <= longest && samples <= position && overlapSamples + samples <= bound;
  }
}

/** Pauses and overlaps shorter than this in all are not worth a word. */
const WORTH_A_WARNING_SECONDS = 1;

/** What to say of the times of a track. */
export function clockWarnings(
  { gapSamples, overlapSamples, brokenTimes }: Pick<ClockState, 'gapSamples' | 'overlapSamples' | 'brokenTimes'>,
  rateHz: number,
): string[] {
  const seconds = (samples: number) => (samples / rateHz).toFixed(1);
  const isWorth = (samples: number) => samples >= WORTH_A_WARNING_SECONDS * rateHz;
  return [
    ...(isWorth(gapSamples)
      ? [`Pauses in the times of the packets, ${seconds(gapSamples)} s in all, were taken as silence.`]
      : []),
    ...(isWorth(overlapSamples)
      ? [
          `Packets overlap in their times, by ${seconds(overlapSamples)} s in all; that much of their sound was left out.`,
        ]
      : []),
    ...(brokenTimes > 0 ? ['The times of the packets jump; where they do the samples were counted instead.'] : []),
  ];
}
