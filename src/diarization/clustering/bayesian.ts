import type { LocalSpeakers } from '../local-speakers.ts';
import { dot, normalise } from '../vectors.ts';
import { centroidsOf, largeClusters, renumber } from './centroids.ts';
import { cutAtHeight, type Merge } from './linkage.ts';
import { VBX_DEFAULTS, vbx } from './vbx.ts';

export interface BayesianParameters {
  /** Share of the evidence that lies in the subsegments, the rest in the local speakers. */
  readonly subsegmentShare: number;
  /** Subsegments that take part, at most. */
  readonly maxSubsegments: number;
  /** Distance at which the tree is cut for the clusters to start from: low, because VBx merges and never splits. */
  readonly initialThreshold: number;
  /** The same between representatives of a long recording, which are means and so lie closer together. */
  readonly representativeInitialThreshold: number;
  /** Clusters to start from, at most. */
  readonly maxClusters: number;
  /** Fa of VBx: how much a second of speech counts. */
  readonly statisticsScale: number;
  /** Fb of VBx, the larger, the fewer speakers remain: in a recording without speech… */
  readonly speakerRegularisation: number;
  /** …plus so much for each second of speech, since nobody sounds the same for an hour… */
  readonly regularisationPerSecond: number;
  /** …and at most. */
  readonly maxRegularisation: number;
  /**
   * Speech that counts as evidence, at most: of longer recordings every second counts for less. With all of a day's seconds the
   * model would explain each person's moods and microphones by speakers of their own.
   */
  readonly maxEvidenceSeconds: number;
  /** Speakers whose prior falls below this share of the largest are dropped. */
  readonly minPriorShare: number;
  /** So are those with less speech. */
  readonly minSpeakerSeconds: number;
}

/** Local speakers with enough clean speech, and subsegments. */
export interface BayesianItems {
  /** Shifted embeddings. */
  readonly speakers: LocalSpeakers;
  /** [count] how much each counts in a centroid */
  readonly weights: Float64Array;
  /** [count] distinct seconds, how much evidence each is */
  readonly seconds: Float64Array;
}

/**
 * Speakers by variational Bayes: VBx (see `vbx.ts`) in a PLDA space, started from a low cut of the linkage tree. Items count by
 * their distinct seconds, since overlapping windows hear the same speech; of a long recording it finds the number of speakers
 * better than any distance does. The same as `training/calibration/clustering.py`.
 *
 * @param features [count, phi.length] in the PLDA space, of the embeddings before the shift
 * @returns [speakers, dimension] unit centroids of the shifted embeddings, most speech first
 */
export async function bayesianCentroids(
  { speakers, weights, seconds }: BayesianItems,
  features: Float64Array,
  phi: Float64Array,
  tree: readonly Merge[],
  parameters: BayesianParameters,
  pause: () => Promise<void>,
): Promise<Float32Array> {
  const { count, dimension, embeddings } = speakers;
  const cut = cutAtHeight(tree, count, parameters.initialThreshold);
  const anySize = { minClusterSeconds: 0, minClusterShare: 0 };
  const largest = largeClusters(cut, seconds, anySize).slice(0, parameters.maxClusters);
  const start = centroidsOf(speakers, weights, renumber(cut, largest), largest.length);
  const initial = Int32Array.from({ length: count }, (_, row) => {
    let best = 0;
    let highest = Number.NEGATIVE_INFINITY;
    for (let cluster = 0; cluster < largest.length; cluster++) {
      const score = dot(embeddings, row * dimension, start, cluster * dimension, dimension);
      if (score > highest) [best, highest] = [cluster, score];
    }
    return best;
  });
  const total = seconds.reduce((sum, value) => sum + value, 0);
  const speakerRegularisation = Math.min(
    parameters.maxRegularisation,
    parameters.speakerRegularisation + parameters.regularisationPerSecond * total,
  );
  const { statisticsScale } = parameters;
  const settings = { ...VBX_DEFAULTS, statisticsScale, speakerRegularisation, maxIterations: 40 };
  const share = Math.min(1, parameters.maxEvidenceSeconds / total);
  const evidence = share < 1 ? seconds.map((value) => share * value) : seconds;
  const { gamma, pi, speakers: found } = await vbx(features, phi, initial, settings, { weights: evidence, pause });
  const speech = Array.from({ length: found }, (_, k) =>
    seconds.reduce((sum, s, row) => sum + s * gamma[row * found + k]!, 0),
  );
  const all = Array.from(pi, (_, k) => k).sort((a, b) => pi[b]! - pi[a]! || a - b);
  const least = parameters.minPriorShare * pi[all[0]!]!;
  const kept = all.filter((k) => pi[k]! >= least && speech[k]! >= parameters.minSpeakerSeconds);
  const chosen = kept.length > 0 ? kept : all.slice(0, 1);
  const centroids = new Float32Array(chosen.length * dimension);
  chosen.forEach((k, index) => {
    const sums = new Float64Array(dimension);
    for (let row = 0; row < count; row++) {
      const weight = weights[row]! * gamma[row * found + k]!;
      for (let d = 0; d < dimension; d++) sums[d]! += weight * embeddings[row * dimension + d]!;
    }
    centroids.set(sums, index * dimension);
    normalise(centroids, index * dimension, dimension);
  });
  return centroids;
}
