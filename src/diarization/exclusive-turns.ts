import { type BridgedPauses, type FrameTurn, isBridged } from './turns.ts';

/** Frames on end in which one cluster has the turn, with its running sum before and after them. */
interface Run {
  readonly cluster: number;
  readonly startFrame: number;
  endFrame: number;
  readonly before: number;
  after: number;
}

/**
 * Turns of one speaker at a time. Runs shorter than `minFrames` are dropped, the shortest first, and what lies around one is then a pause like any
 * other: two frames of somebody else do not cut a turn in which they are not kept. Pauses of a cluster are bridged as `pauses` says,
 * where nobody else has a turn in them.
 */
export class ExclusiveTurns {
  readonly #turns: FrameTurn<undefined>[] = [];
  /** Those before which no pause can be bridged any more are settled, so that a day holds its turns and not its runs. */
  #runs: Run[] = [];

  constructor(
    private readonly pauses: BridgedPauses<number>,
    private readonly minFrames: number,
  ) {}

  /**
   * @param current the cluster that has the turn in `frame`, or nobody; frames come in order, without gaps
   * @param sumOf running sum of a cluster over the frames before this one
   */
  push(frame: number, [current]: readonly number[], sumOf: (cluster: number) => number): void {
    const last = this.#runs.at(-1);
    if (last !== undefined && last.endFrame === frame) last.after = sumOf(last.cluster);
    if (current === undefined) return;
    if (last !== undefined && last.endFrame === frame && last.cluster === current) {
      last.endFrame = frame + 1;
      return;
    }
    const { maxFrames, maxHeardFrames = 0 } = this.pauses;
    if (last !== undefined && frame - last.endFrame > Math.max(maxFrames, maxHeardFrames)) this.#settle();
    const before = sumOf(current);
    this.#runs.push({ cluster: current, startFrame: frame, endFrame: frame + 1, before, after: before });
  }

  /** All turns, by start. */
  finish(): readonly FrameTurn<undefined>[] {
    this.#settle();
    return this.#turns;
  }

  #settle(): void {
    let runs = this.#bridged(this.#runs);
    for (let frames = 1; frames < this.minFrames; frames++) {
      const kept = runs.filter(({ startFrame, endFrame }) => endFrame - startFrame > frames);
      if (kept.length < runs.length) runs = this.#bridged(kept);
    }
    for (const { cluster, startFrame, endFrame } of runs) {
      this.#turns.push({ cluster, startFrame, endFrame, summary: undefined });
    }
    this.#runs = [];
  }

  #bridged(runs: readonly Run[]): Run[] {
    const bridged: Run[] = [];
    for (const run of runs) {
      const last = bridged.at(-1);
      if (last !== undefined && last.cluster === run.cluster && this.#isPause(last, run)) {
        last.endFrame = run.endFrame;
        last.after = run.after;
      } else {
        bridged.push({ ...run });
      }
    }
    return bridged;
  }

  #isPause(last: Run, next: Run): boolean {
    const frames = next.startFrame - last.endFrame;
    return isBridged(this.pauses, { frames, before: last.after, after: () => next.before, cluster: next.cluster });
  }
}
