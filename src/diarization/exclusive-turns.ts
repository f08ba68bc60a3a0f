import type { FrameTurn } from './turns.ts';

/** Frames on end in which one cluster has the exclusive turn, and the frame in which its turn began that they are in. */
interface Run {
  readonly cluster: number;
  readonly startFrame: number;
  endFrame: number;
  turnStart: number;
}

/**
 * Turns of one speaker at a time. Runs shorter than `minFrames` are dropped, the shortest first, and what lies around one is then a pause like any
 * other: two frames of somebody else do not cut a turn in which they are not kept. A pause is bridged where the cluster's own turn
 * goes on over it and nobody else has an exclusive turn in it.
 */
export class ExclusiveTurns {
  readonly #turns: FrameTurn<undefined>[] = [];
  /** Those before which no pause can be bridged any more are settled, so that a day holds its turns and not its runs. */
  #runs: Run[] = [];

  /** @param maxPauseFrames after so many frames of nobody at all every turn is over */
  constructor(
    private readonly maxPauseFrames: number,
    private readonly minFrames: number,
  ) {}

  /**
   * @param current the cluster that has the exclusive turn in `frame`, or nobody; frames come in order, without gaps
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
