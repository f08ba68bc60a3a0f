import type { WindowFrames } from './overlap-add.ts';
import { marginals, type Powerset } from './powerset.ts';

/** Tracks that are averaged over the windows: speech, crosstalk, then one per cluster. */
export const SPEECH = 0;
export const CROSSTALK = 1;
export const FIRST_SPEAKER = 2;

/** Speakers of one window: the cluster of each local speaker and how sure that is. */
export interface WindowSpeakers {
  /** [locals], −1 for local speakers without an embedding */
  readonly clusterOf: Int32Array;
  /** [locals, clusters] */
  readonly posterior: Float32Array;
}

/**
 * What a window contributes to the recording's frames.
 *
 * Activations are marginal probabilities and the number of speakers at once is its expectation, not the hard decision: where
 * windows disagree, the surer one counts for more (about one point of DER on simulated conversations against hard decisions).
 *
 * @param probabilities [frames, classes], 255 for certainty
 * @param countBias added to the expected number of speakers
 */
export function windowFrames(
  probabilities: Uint8Array,
  powerset: Powerset,
  { clusterOf, posterior }: WindowSpeakers,
  clusters: number,
  countBias: number,
): WindowFrames {
  const { classes, speakers: locals, cardinality } = powerset;
  const frames = probabilities.length / classes;
  const width = FIRST_SPEAKER + clusters;
  const activations = marginals(probabilities, powerset);
  const counts = new Float32Array(frames);
  const tracks = new Float32Array(frames * width);
  for (let frame = 0; frame < frames; frame++) {
    const at = frame * width;
    let expected = 0;
    for (let index = 0; index < classes; index++) {
      const probability = probabilities[frame * classes + index]! / 255;
      expected += probability * cardinality[index]!;
      if (cardinality[index]! >= 1) tracks[at + SPEECH]! += probability;
      if (cardinality[index]! >= 2) tracks[at + CROSSTALK]! += probability;
    }
    counts[frame] = expected + countBias;
    for (let local = 0; local < locals; local++) {
      activations[frame * locals + local]! /= 255;
      if (clusterOf[local]! < 0) continue;
      const probability = activations[frame * locals + local]!;
      for (let cluster = 0; cluster < clusters; cluster++) {
        tracks[at + FIRST_SPEAKER + cluster]! += probability * posterior[local * clusters + cluster]!;
      }
    }
  }
  return { counts, activations, locals, clusterOf, tracks };
}
