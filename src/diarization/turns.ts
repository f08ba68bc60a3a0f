import { SAMPLE_RATE_HZ } from '../audio/audio-ports.ts';
/** A turn on the frame grid, with a summary of its frames. */
export interface FrameTurn<T> {
  readonly cluster: number;
  /** First active frame, and the first one after the turn. */
  readonly startFrame: number;
  readonly endFrame: number;
  readonly summary: T;
}

interface Open<T> {
  startFrame: number;
  endFrame: number;
  before: T;
  /** Set once the cluster falls silent. */
  after: T | undefined;
}

/**
 * Builds turns from the active clusters of consecutive frames. Pauses of a cluster of up to `maxPauseFrames` are
 * bridged, turns shorter than `minFrames` dropped. Streaming: holds one open turn per cluster, and the summaries of
 * those that ended.
 */
export class TurnBuilder<S extends object | number, T> {
  readonly #turns: FrameTurn<T>[] = [];
  /** By cluster. An array, because iterating over a map makes garbage for every entry, and there are many frames. */
  readonly #open: (Open<S> | undefined)[] = [];

  constructor(
    private readonly maxPauseFrames: number,
    private readonly minFrames: number,
    /** Makes a turn's summary of the running sums before it and after it. */
    private readonly summarise: (before: S, after: S, frames: number) => T,
  ) {}

  /**
   * @param active clusters active in `frame`; frames come in order, without gaps
   * @param sums running sums over the frames before this one; asked for only where a turn begins or pauses
   */
  push(frame: number, active: readonly number[], sums: () => S): void {
    for (let cluster = 0; cluster < this.#open.length; cluster++) {
      const open = this.#open[cluster];
      if (open !== undefined && !active.includes(cluster)) open.after ??= sums();
    }
    for (const cluster of active) {
      while (this.#open.length <= cluster) this.#open.push(undefined);
      const open = this.#open[cluster];
      if (open !== undefined && frame - open.endFrame <= this.maxPauseFrames) {
        open.endFrame = frame + 1;
        open.after = undefined;
      } else {
        if (open !== undefined) this.#close(cluster, open, sums);
        this.#open[cluster] = { startFrame: frame, endFrame: frame + 1, before: sums(), after: undefined };
      }
    }
  }

  /** First frame of the turn of a cluster that was active in the last frame. */
  startOf(cluster: number): number {
    const open = this.#open[cluster];
    if (open === undefined) throw new RangeError(`cluster ${cluster} has no turn`);
    return open.startFrame;
  }

  /** All turns, by start and cluster. @param sums running sums over all frames */
  finish(sums: () => S): readonly FrameTurn<T>[] {
    this.#open.forEach((open, cluster) => {
      if (open !== undefined) this.#close(cluster, open, sums);
    });
    this.#open.length = 0;
    return this.#turns.sort((a, b) => a.startFrame - b.startFrame || a.cluster - b.cluster);
  }

  #close(cluster: number, open: Open<S>, sums: () => S): void {
    const { startFrame, endFrame, before } = open;
    const frames = endFrame - startFrame;
    if (frames < this.minFrames) return;
    const summary = this.summarise(before, open.after ?? sums(), frames);
    this.#turns.push({ cluster, startFrame, endFrame, summary });
  }
}

/** Where frames begin and end in the recording. */
export interface FrameTimes {
  readonly shiftSamples: number;
  /** Position of the boundary before frame 0. */
  readonly offsetSamples: number;
  readonly totalSamples: number;
}

/** Start and end of a turn in seconds, inside the recording. */
export function turnSeconds(
  turn: { readonly startFrame: number; readonly endFrame: number },
  times: FrameTimes,
): { readonly startSeconds: number; readonly endSeconds: number } {
  return { startSeconds: secondsAt(turn.startFrame, times), endSeconds: secondsAt(turn.endFrame, times) };
}

function secondsAt(frame: number, { shiftSamples, offsetSamples, totalSamples }: FrameTimes): number {
  return Math.min(totalSamples, Math.max(0, frame * shiftSamples + offsetSamples)) / SAMPLE_RATE_HZ;
}

const NOBODY: readonly number[] = [];

/**
 * Who has the exclusive turn in each frame: the most active speaker, once it has been that for as long as the shortest
 * turn, or as soon as who had it is silent. Two who are about as active as each other would otherwise take turns of a
 * few frames, all too short to be kept.
 */
export class ExclusiveSpeaker {
  /**
   * An array that comes again and again: a new one for every frame would cost more than all else that is done for it.
   */
  readonly #current: [number] = [-1];
  /** The most active speaker of the frame before, and for how many frames on end another than the current one. */
  #leader = -1;
  #leads = 0;

  /** @param minFrames length of the shortest turn */
  constructor(private readonly minFrames: number) {}

  /**
   * @param active clusters, the most active first; frames come in order, without gaps
   * @returns the cluster, or `NOBODY` if none is active
   */
  choose(active: readonly number[]): readonly number[] {
    if (active.length === 0) return NOBODY;
    const [first] = active;
    const [current] = this.#current;
    this.#leads = first === current ? 0 : first === this.#leader ? this.#leads + 1 : 1;
    this.#leader = first;
    if (!active.includes(current) || this.#leads >= this.minFrames) {
      this.#current[0] = first;
      this.#leads = 0;
    }
    return this.#current;
  }
}

/**
 * Frames on end in which one cluster has the exclusive turn, and the frame in which its turn began that they are in.
 */
interface Run {
  readonly cluster: number;
  readonly startFrame: number;
  endFrame: number;
  turnStart: number;
}

/**
 * Turns of one speaker at a time. Runs shorter than `minFrames` are dropped, the shortest first, and what lies around
 * one is then a pause like any other: two frames of another speaker do not cut a turn in which they are not kept. A
 * pause is bridged where the cluster's own turn continues over it and no other has an exclusive turn in it.
 */
export class ExclusiveTurns {
  readonly #turns: FrameTurn<undefined>[] = [];
  /**
   * Those before which no pause can be bridged any more are settled, so that a day holds its turns and not its runs.
   */
  #runs: Run[] = [];

  /** @param maxPauseFrames after this number of frames without a speaker every turn ends */
  constructor(
    private readonly maxPauseFrames: number,
    private readonly minFrames: number,
  ) {}

  /**
   * @param current the cluster that has the exclusive turn in `frame`, or none; frames come in order, without gaps
   * @param turnStart first frame of the turn that a cluster is in
   */
  push(frame: number, [current]: readonly number[], turnStart: (cluster: number) => number): void {
    if (current === undefined) return;
    const last = this.#runs.at(-1);
    if (last !== undefined && last.endFrame === frame && last.cluster === current) {
      last.endFrame = frame + 1;
      return;
    }
    if (last !== undefined && frame - last.endFrame > this.maxPauseFrames) this.#settle();
    this.#runs.push({ cluster: current, startFrame: frame, endFrame: frame + 1, turnStart: turnStart(current) });
  }

  /** All turns, by start. */
  finish(): readonly FrameTurn<undefined>[] {
    this.#settle();
    return this.#turns;
  }

  #settle(): void {
    let runs = bridged(this.#runs);
    for (let frames = 1; frames < this.minFrames; frames++) {
      const kept = runs.filter(({ startFrame, endFrame }) => endFrame - startFrame > frames);
      if (kept.length < runs.length) runs = bridged(kept);
    }
    for (const { cluster, startFrame, endFrame } of runs) {
      this.#turns.push({ cluster, startFrame, endFrame, summary: undefined });
    }
    this.#runs = [];
  }
}

function bridged(runs: readonly Run[]): Run[] {
  const joined: Run[] = [];
  for (const run of runs) {
    const last = joined.at(-1);
    if (last !== undefined && last.cluster === run.cluster && last.turnStart === run.turnStart) {
      last.endFrame = run.endFrame;
    } else {
      joined.push({ ...run });
    }
  }
  return joined;
}
