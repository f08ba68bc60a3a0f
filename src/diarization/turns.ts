import { SAMPLE_RATE_HZ } from '../audio/audio-ports.ts';
/** A turn on the frame grid, with a summary of its frames. */
export interface FrameTurn<T> {
  readonly cluster: number;
  /** First frame of the turn. */
  readonly startFrame: number;
  /** First frame after the turn. */
  readonly endFrame: number;
  readonly summary: T;
}

interface Open<T> {
  startFrame: number;
  endFrame: number;
  before: T;
  /** Set when the cluster falls silent. */
  after: T | undefined;
}

/**
 * Builds turns from the active clusters of consecutive frames. Pauses of a cluster of up to `maxPauseFrames` are
 * bridged, turns shorter than `minFrames` dropped. Memory holds one open turn per cluster and the finished turns.
 */
export class TurnBuilder<S extends object | number, T> {
  readonly #turns: FrameTurn<T>[] = [];
  /** By cluster. An array, because iterating over a map in every frame makes garbage for each entry. */
  readonly #open: (Open<S> | undefined)[] = [];

  constructor(
    private readonly maxPauseFrames: number,
    private readonly minFrames: number,
    /** Makes a turn's summary from the running sums before and after it. */
    private readonly summarise: (before: S, after: S, frames: number) => T,
  ) {}

  /**
   * @param active clusters active in `frame`; frames come in order, without gaps
   * @param sums running sums over the frames before this one; called only if a turn begins or pauses
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

/** Mapping from frames to samples of the recording. */
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

const NO_CLUSTER: readonly number[] = [];

/**
 * Chooses the speaker of the exclusive turn in each frame. The most active speaker gets it after leading for the
 * minimum duration of a turn, or at once if the current one is silent. Without that delay, two speakers of similar
 * activation would alternate every few frames, in turns too short to be kept.
 */
export class ExclusiveSpeaker {
  /** Reused: a new array for every frame would cost more than all other work on it. */
  readonly #current: [number] = [-1];
  /** The most active speaker of the previous frame. */
  #leader = -1;
  /** Consecutive frames in which the leader was not the current speaker. */
  #leaderFrames = 0;

  /** @param minFrames length of the shortest turn */
  constructor(private readonly minFrames: number) {}

  /**
   * @param active clusters, the most active first; frames come in order, without gaps
   * @returns the cluster, or `NO_CLUSTER` if none is active
   */
  choose(active: readonly number[]): readonly number[] {
    if (active.length === 0) return NO_CLUSTER;
    const [first] = active;
    const [current] = this.#current;
    this.#leaderFrames = first === current ? 0 : first === this.#leader ? this.#leaderFrames + 1 : 1;
    this.#leader = first;
    if (!active.includes(current) || this.#leaderFrames >= this.minFrames) {
      this.#current[0] = first;
      this.#leaderFrames = 0;
    }
    return this.#current;
  }
}

/** Consecutive frames in which one cluster has the exclusive turn. */
interface Run {
  readonly cluster: number;
  readonly startFrame: number;
  endFrame: number;
  /** First frame of the cluster's turn that contains the run. */
  turnStart: number;
}

/**
 * Turns of one speaker at a time. Runs shorter than `minFrames` are dropped, the shortest first, and count as pauses
 * then: two frames of another speaker do not split a turn. A pause is bridged if the cluster's own turn continues over
 * it and no other cluster has an exclusive turn in it.
 */
export class ExclusiveTurns {
  readonly #turns: FrameTurn<undefined>[] = [];
  /** Runs that may still be bridged. Earlier ones became turns, so that memory does not hold the runs of a day. */
  #runs: Run[] = [];

  /** @param maxPauseFrames every turn ends after a longer pause of all speakers */
  constructor(
    private readonly maxPauseFrames: number,
    private readonly minFrames: number,
  ) {}

  /**
   * @param current cluster with the exclusive turn in `frame`, or none; frames come in order, without gaps
   * @param turnStart first frame of the current turn of a cluster
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
