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
  return Math.min(totalSamples, Math.max(0, frame * shiftSamples + offsetSamples)) / 16000;
}
