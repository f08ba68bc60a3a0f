import type { BlockReader } from './block-reader.ts';
import {
  type ConstantDuration,
  type PacketCounter,
  type PacketRun,
  type PacketWalk,
  packetBytes,
} from './container.ts';

/** Smaller differences of packet times from the count of samples are rounding and jitter: the count continues. */
const TOLERANCE_SECONDS = 0.05;
/** A jump forward up to this is a pause and becomes silence; a longer one is a change of clock. */
export const MAX_GAP_SECONDS = 600;
/** A jump back up to this is an overlap, whose end is played; a longer one is a change of clock. */
const MAX_OVERLAP_SECONDS = 1;
/** Overlaps of more than this share of the recording are a broken clock. */
const MAX_OVERLAP_SHARE = 0.01;
/** Jumps that are followed; after more of them the times are ignored. */
const MAX_GAPS = 1024;

/** State of a clock. Plain JSON. */
export interface ClockState {
  /** Samples counted, pauses included. */
  position: number;
  /** Position minus the container's time, samples. */
  shift: number;
  isStarted: boolean;
  /** Jumps that were followed. */
  gaps: number;
  gapSamples: number;
  /** Sum of the jumps back. */
  overlapSamples: number;
  /** Jumps that were not followed. */
  brokenTimes: number;
  lastJumpBack: number;
  /** Silence of short jumps forward, samples: later jumps back may compensate for it. */
  shortGaps: number;
}

/** Counts samples, and follows jumps of the container's times. */
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

  /** Whether the position is after all that were counted before the last jump back. */
  get isAhead(): boolean {
    return this.state.position > this.state.lastJumpBack;
  }

  /** Whether there were too many jumps to confirm further ones. */
  get hasTooManyJumps(): boolean {
    return this.state.gaps >= MAX_GAPS || this.state.brokenTimes >= MAX_GAPS;
  }

  /** Starts at `position`, which is before the recording if it is below 0. `stamp` is its time in the container. */
  start(position: number, stamp: number): void {
    Object.assign(this.state, { position, shift: position - stamp, isStarted: true });
  }

  /** Counts `samples` samples. */
  advance(samples: number): void {
    this.state.position += samples;
  }

  /** Samples by which `stamp`, the time of the packet after `samplesAhead` more samples, is ahead of the count. */
  offsetOf(stamp: number, samplesAhead = 0): number {
    return Math.round(stamp + this.state.shift - this.state.position) - samplesAhead;
  }

  /**
   * Corrects the rounding error of the last packet's duration, so that it is no jump.
   *
   * @param samples number by which the duration is too short; below 0 if it is too long
   */
  correctRounding(samples: number): void {
    this.state.shift += samples;
  }

  /** The jump to `stamp`, the container's time of the next packet in samples; 0 within the tolerance. */
  jumpTo(stamp: number): number {
    const { state } = this;
    if (!state.isStarted) {
      this.start(state.position, stamp);
      return 0;
    }
    const jump = this.offsetOf(stamp);
    return Math.abs(jump) <= this.toleranceSamples ? 0 : jump;
  }

  /** Follows a plausible jump; ignores any other. */
  jump(samples: number): void {
    if (samples === 0) return;
    const { state } = this;
    const isPlausible =
      state.gaps < MAX_GAPS && samples <= MAX_GAP_SECONDS * this.rateHz && (samples > 0 || this.#isOverlap(-samples));
    if (!isPlausible) {
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
    const bound = longest + MAX_OVERLAP_SHARE * position + shortGaps;
    return samples <= longest && samples <= position && overlapSamples + samples <= bound;
  }
}

/** Pauses and overlaps with a smaller sum cause no warning. */
const MIN_WARNING_SECONDS = 1;

/** Warnings about the times of a track. */
export function clockWarnings(
  { gapSamples, overlapSamples, brokenTimes }: Pick<ClockState, 'gapSamples' | 'overlapSamples' | 'brokenTimes'>,
  rateHz: number,
): string[] {
  const seconds = (samples: number) => (samples / rateHz).toFixed(1);
  const isLong = (samples: number) => samples >= MIN_WARNING_SECONDS * rateHz;
  return [
    ...(isLong(gapSamples)
      ? [`Pauses in the times of the packets, ${seconds(gapSamples)} s in all, were taken as silence.`]
      : []),
    ...(isLong(overlapSamples)
      ? [
          `Packets overlap in their times, by ${seconds(overlapSamples)} s in all; ` +
            'that much of their audio was left out.',
        ]
      : []),
    ...(brokenTimes > 0 ? ['The times of some packets jump; there the samples were counted instead.'] : []),
  ];
}

/** Largest sum of errors if a writer rounds each time. A larger sum shows that the writer rounds the durations. */
const MAX_ROUNDING_TICKS = 2;

/**
 * Samples by which a packet's duration in the container is too short because it is rounded to a coarse clock: a writer
 * that gives every frame of 23.2 ms a duration of 23. Below 0 if it is too long; 0 without such rounding.
 *
 * A writer that rounds times instead of durations alternates between two durations, so that the errors do not add up.
 *
 * @param samples number of samples that the packet decodes to
 */
export function roundingErrorSamples(
  { ticks, timescale, packets }: ConstantDuration,
  samples: number,
  rateHz: number,
): number {
  // In units of a tick divided by `rateHz`: integers, so that an exact duration gives 0.
  const off = samples * timescale - ticks * rateHz;
  const isRounding = Math.abs(off) < rateHz && Math.abs(off) * packets > MAX_ROUNDING_TICKS * rateHz;
  return isRounding ? off / timescale : 0;
}

/** Rounding of a run of packets of the same duration. Plain JSON. */
export interface RoundingState {
  duration: number;
  packets: number;
}

/**
 * Samples by which the container's time of the next packet is too early because it rounds the durations; below 0 if it
 * is too late. Once a run shows that it does, all its earlier packets are included.
 *
 * @param run counts the packets of the same duration
 * @param samples number of samples that the packet decodes to
 * @param duration the container's, in samples
 * @param tick samples of one tick of the container's clock
 */
export function roundingOfRun(run: RoundingState, samples: number, duration: number, tick: number): number {
  if (duration !== run.duration) Object.assign(run, { duration, packets: 0 });
  const off = samples - duration;
  if (!(Math.abs(off) < tick)) return 0;
  const isRounding = (packets: number) => Math.abs(off) * packets > MAX_ROUNDING_TICKS * tick;
  const had = isRounding(run.packets++);
  if (!isRounding(run.packets)) return 0;
  return had ? off : off * run.packets;
}

/** Packets of a track that are compared: video is not stored in the order of its times. */
const FIRST_PACKETS = 16;
/** A packet that is earlier than the first one by more belongs to another clock: the recording was edited. */
const MAX_REORDER_SECONDS = 1;

/** Start time of a track, from its first packets. */
export class TrackStartTime {
  /** Infinite if no packet has a time. */
  seconds = Number.POSITIVE_INFINITY;
  #packets = 0;

  /** Adds the time of the next packet, if it has one. */
  add(seconds: number | undefined): void {
    if (seconds === undefined || this.#packets >= FIRST_PACKETS) return;
    const isReordered = seconds < this.seconds && seconds >= this.seconds - MAX_REORDER_SECONDS;
    if (this.#packets++ === 0 || isReordered) this.seconds = seconds;
  }
}

/** A run of packets, and the number of samples of each. */
export interface CountedRun {
  readonly run: PacketRun;
  readonly counts: readonly (readonly [samples: number, canRestart: boolean])[];
}

/** A packet that was not returned yet. */
interface PacketAhead {
  /** Samples between the next packet and this one. */
  readonly samples: number;
  readonly seconds: number | undefined;
}

/** The runs of a walk in order, with look-ahead. */
export class CountedRuns {
  /** Runs that were read ahead. */
  readonly #queue: CountedRun[] = [];

  constructor(
    private readonly reader: BlockReader,
    private readonly walk: PacketWalk,
    private readonly counter: PacketCounter | undefined,
  ) {}

  async next(): Promise<CountedRun | undefined> {
    return this.#queue.shift() ?? (await this.#pull());
  }

  /** Whether there is another run. */
  async hasMore(): Promise<boolean> {
    if (this.#queue.length > 0) return true;
    const pulled = await this.#pull();
    if (pulled) this.#queue.push(pulled);
    return pulled !== undefined;
  }

  /** The packets from number `from` of the current run, and those of the runs after it. */
  async *ahead(run: CountedRun, from: number): AsyncGenerator<PacketAhead> {
    let samples = 0;
    let first = from;
    let current: CountedRun | undefined = run;
    for (let i = 0; current; i++) {
      const { packets } = current.run;
      const { counts }: CountedRun = current;
      for (let k = first; k < packets.length; k++) {
        yield { samples, seconds: packets[k].seconds };
        samples += counts[k][0];
      }
      first = 0;
      if (i === this.#queue.length) {
        const pulled = await this.#pull();
        if (pulled) this.#queue.push(pulled);
      }
      current = this.#queue[i];
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
      const head = headBytes > 0 ? await packetBytes(this.reader, packet, headBytes) : NO_BYTES;
      counts.push([this.counter.count(head, packet.length), canRestart]);
    }
    return { run: next.value, counts };
  }
}

const NO_BYTES = new Uint8Array(0);

/** Audio whose times must confirm a jump: packets delayed by a network or a busy machine are late only briefly. */
const CONFIRM_SECONDS = 0.5;
/** Packets that are read ahead: more than the confirming audio has, except for the shortest packets. */
const MAX_PACKETS_AHEAD = 256;

/** Distinguishes lasting jumps of the times from briefly late or early packets. */
export class JumpFilter {
  /** Numbers of the packets whose times contradict jumps forward and back that begin before them. */
  readonly #contradicted = { forward: -1, back: -1 };

  constructor(
    private readonly clock: Clock,
    private readonly runs: CountedRuns,
    private readonly rateHz: number,
  ) {}

  /**
   * The part of a jump that lasts: all of it if the following packets agree within the tolerance of the clock.
   *
   * @param packet number of the packet at which the times jump, number `i` of `run`
   */
  async lastingJump(jump: number, packet: number, run: CountedRun, i: number): Promise<number> {
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
