import { type FinishedFrame, OverlapAdd } from '../../src/diarization/overlap-add.ts';
import { type FrameTurn, TurnBuilder, turnSeconds } from '../../src/diarization/turns.ts';
import { firstFrame } from '../../src/diarization/windows.ts';

export interface BinaryWindows {
  /** [windows, frames, 3] of 0 and 1 */
  readonly segmentation: ArrayLike<number>;
  readonly windows: number;
  readonly framesPerWindow: number;
  /** [windows, 3], negative for none */
  readonly hardClusters: ArrayLike<number>;
  readonly clusters: number;
  readonly stepSamples: number;
  readonly shiftSamples: number;
  readonly sizeSamples: number;
  readonly totalFrames: number;
}

const LOCALS = 3;

export interface Rebuilt {
  /** [totalFrames] rounded speaker counts */
  readonly counts: number[];
  /** [totalFrames, clusters] */
  readonly discrete: Uint8Array;
  readonly activations: Float32Array;
}

/** Runs the pipeline's overlap-add on stored segmentations, with the speaker count as a track. */
export function rebuild(input: BinaryWindows): Rebuilt {
  const { framesPerWindow, clusters, totalFrames, stepSamples, shiftSamples, sizeSamples } = input;
  const counts: number[] = [];
  const discrete = new Uint8Array(totalFrames * clusters);
  const activations = new Float32Array(totalFrames * clusters);
  const overlapAdd = new OverlapAdd({ framesPerWindow, clusters, tracks: 1, totalFrames }, (frame: FinishedFrame) => {
    counts.push(frame.tracks[0]);
    activations.set(frame.activations, frame.frame * clusters);
    for (const cluster of frame.active) discrete[frame.frame * clusters + cluster] = 1;
  });
  for (let window = 0; window < input.windows; window++) {
    const offset = window * framesPerWindow * LOCALS;
    const frames = Array.from({ length: framesPerWindow * LOCALS }, (_, index) => input.segmentation[offset + index]);
    const speakerCounts = Array.from(
      { length: framesPerWindow },
      (_, frame) => frames[frame * LOCALS] + frames[frame * LOCALS + 1] + frames[frame * LOCALS + 2],
    );
    const grid = { windowSamples: 160000, stepSamples, totalSamples: Number.MAX_SAFE_INTEGER };
    overlapAdd.push(firstFrame(window, grid, { shiftSamples, sizeSamples, framesPerWindow }), {
      counts: speakerCounts,
      activations: frames,
      locals: LOCALS,
      clusterOf: Array.from({ length: LOCALS }, (_, local) => input.hardClusters[window * LOCALS + local]),
      tracks: speakerCounts,
    });
  }
  overlapAdd.finish();
  return { counts, discrete, activations };
}

/**
 * Turns of a discrete diarization by the reference's convention: a boundary is the centre of the frame that changes.
 */
export function turnsOf(
  discrete: ArrayLike<number>,
  clusters: number,
  frames: { readonly shiftSamples: number; readonly sizeSamples: number },
  pauses: { readonly off: number; readonly on: number } = { off: 0, on: 0 },
): [cluster: number, startSeconds: number, endSeconds: number][] {
  const totalFrames = discrete.length / clusters;
  const secondsPerFrame = frames.shiftSamples / 16000;
  const builder = new TurnBuilder<number, undefined>(
    Math.floor(pauses.off / secondsPerFrame),
    Math.ceil(pauses.on / secondsPerFrame),
    () => undefined,
  );
  for (let frame = 0; frame < totalFrames; frame++) {
    const active = Array.from({ length: clusters }, (_, cluster) => cluster).filter(
      (cluster) => discrete[frame * clusters + cluster] > 0,
    );
    builder.push(frame, active, () => 0);
  }
  return builder
    .finish(() => 0)
    .map((turn: FrameTurn<undefined>) => {
      // In the reference a turn that lasts to the end stops at the centre of the last frame.
      const endFrame = Math.min(turn.endFrame, totalFrames - 1);
      const { startSeconds, endSeconds } = turnSeconds(
        { startFrame: turn.startFrame, endFrame },
        {
          shiftSamples: frames.shiftSamples,
          offsetSamples: frames.sizeSamples / 2,
          totalSamples: Number.MAX_SAFE_INTEGER,
        },
      );
      return [turn.cluster, startSeconds, endSeconds];
    });
}
