import type { BlockReader } from './block-reader.ts';
import { type EvenTimes, type PacketCounter, type PacketRun, type PacketWalk, packetBytes } from './container.ts';

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

  /** Whether there were too many jumps to examine further ones closely. */
  get hasTooManyJumps(): boolean {
    return this.state.gaps >= MAX_GAPS || this.state.brokenTimes >= MAX_GAPS;
  }

  /** A packet of `samples` samples. */
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

/**
 * What times that are rounded each for itself may be off by, one after another; equal ones that come to more were not.
 */
const MOST_TICKS = 2;

/**
 * How many samples too few a packet's duration in the container tells, where that is but the rounding to a coarse
 * clock: a writer that gives every frame of 23.2 ms the length of 23. Below 0 where it tells too many; 0 where there is
 * another reason, or none.
 *
 * Durations that follow real times change between the two whole numbers around the true one, so that nothing adds up.
 *
 * @param samples what the packet decodes to
 */
export function roundedOff({ ticks, timescale, packets }: EvenTimes, samples: number, rateHz: number): number {
  // In parts of a tick, of which it has `rateHz`: whole numbers, so that what is exact comes out as 0.
  const off = samples * timescale - ticks * rateHz;
  const isRounding = Math.abs(off) < rateHz && Math.abs(off) * packets > MOST_TICKS * rateHz;
  return isRounding ? off / timescale : 0;
}

/** Packets of a track that are looked at: pictures do not come in the order in which they are shown. */
const FIRST_PACKETS = 16;
/** What comes so much earlier than the first packet is of another clock: the recording was put together. */
const MAX_REORDER_SECONDS = 1;

/** When a track begins, by the times of its first packets. */
export class FirstSeconds {
  /** Endless where no packet has a time. */
  seconds = Number.POSITIVE_INFINITY;
  #packets = 0;

  /** The time of the next packet, where it has one. */
  pass(seconds: number | undefined): void {
    if (seconds === undefined || this.#packets >= FIRST_PACKETS) return;
    const isReordered = seconds < this.seconds && seconds >= this.seconds - MAX_REORDER_SECONDS;
    if (this.#packets++ === 0 || isReordered) this.seconds = seconds;
  }
}

/** Packets found together, and how many samples each decodes to. */
export interface CountedRun {
  readonly run: PacketRun;
  readonly counts: readonly (readonly [samples: number, canRestart: boolean])[];
}

/** A packet that is still to come. */
interface PacketAhead {
  /** Samples between the next packet and this one. */
  readonly samples: number;
  readonly seconds: number | undefined;
}

/** The runs of a walk in order, with a look at what comes. */
export class CountedRuns {
  /** Runs that were looked at and not taken yet. */
  readonly #waiting: CountedRun[] = [];

  constructor(
    private readonly reader: BlockReader,
    private readonly walk: PacketWalk,
    private readonly counter: PacketCounter | undefined,
  ) {}

  async next(): Promise<CountedRun | undefined> {
    return this.#waiting.shift() ?? (await this.#pull());
  }

  /** Whether there is another run; it is kept for `next`. */
  async hasMore(): Promise<boolean> {
    if (this.#waiting.length > 0) return true;
    const pulled = await this.#pull();
    if (pulled) this.#waiting.push(pulled);
    return pulled !== undefined;
  }

  /** The packets from number `from` of a run that was taken on, and those of the runs after it. */
  async *ahead(taken: CountedRun, from: number): AsyncGenerator<PacketAhead> {
    let samples = 0;
    let first = from;
    let current: CountedRun | undefined = taken;
    for (let i = 0; current; i++) {
      const { run, counts }: CountedRun = current;
      for (let k = first; k < run.packets.length; k++) {
        yield { samples, seconds: run.packets[k].seconds };
        samples += counts[k][0];
      }
      first = 0;
      if (i === this.#waiting.length) {
        const pulled = await this.#pull();
        if (pulled) this.#waiting.push(pulled);
      }
      current = this.#waiting[i];
    }
  }

  async close(): Promise<void> {
    await this.walk.return(undefined);
  }

  async #pull(): Promise<CountedRun | undefined> {
    const next = await this.walk.next();
    if (next.done) return undefined;
    const counts: [number, boolean][] = [];
    for (const packet of next.value.packets) {
      if (packet.samples !== undefined || !this.counter) {
        counts.push([packet.samples ?? 0, true]);
        continue;
      }
      const { canRestart, headBytes } = this.counter;
      const head = headBytes > 0 ? await packetBytes(this.reader, packet, headBytes) : NOTHING;
      counts.push([this.counter.count(head, packet.length), canRestart]);
    }
    return { run: next.value, counts };
  }
}

const NOTHING = new Uint8Array(0);

/**
 * Sound whose times must confirm a jump: packets that a network or a busy machine held up are stamped late, and their
 * successors catch up.
 */
const CONFIRM_SECONDS = 0.5;
/** Packets looked at for it: more than so much sound has, save of the very shortest. */
const MAX_PACKETS_AHEAD = 256;

/** Tells jumps of the times that last from stamps that are late or early for a moment. */
export class SteadyTimes {
  /** Numbers of the packets whose times contradict jumps forward and back that begin before them. */
  readonly #contradicted = { forward: -1, back: -1 };

  constructor(
    private readonly clock: Clock,
    private readonly runs: CountedRuns,
    private readonly rateHz: number,
  ) {}

  /**
   * How much of a jump lasts: all of it, where the packets after agree within the tolerance of the clock.
   *
   * @param packet the number of the packet at which the times jump, number `i` of `run`
   */
  async lasting(jump: number, packet: number, run: CountedRun, i: number): Promise<number> {
    if (this.clock.hasTooManyJumps) return jump;
    const direction = jump > 0 ? 'forward' : 'back';
    if (packet < this.#contradicted[direction]) return 0;
    let least = jump;
    let count = 0;
    for await (const { samples, seconds } of this.runs.ahead(run, i)) {
      if (samples > CONFIRM_SECONDS * this.rateHz || count++ > MAX_PACKETS_AHEAD) break;
      if (seconds === undefined) continue;
      const offset = this.clock.offsetOf(seconds * this.rateHz, samples);
      least = jump > 0 ? Math.min(least, offset) : Math.max(least, offset);
      if (jump > 0 ? least > this.clock.toleranceSamples : least < -this.clock.toleranceSamples) continue;
      this.#contradicted[direction] = packet + count - 1;
      return 0;
    }
    return Math.abs(jump - least) <= this.clock.toleranceSamples ? jump : least;
  }
}
