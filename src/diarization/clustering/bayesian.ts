import type { LocalSpeakers } from '../local-speakers.ts';
import { dot, normalise } from '../vectors.ts';
import { centroidsOf, largeClusters, renumber } from './centroids.ts';
import { cutAtHeight, type Merge } from './linkage.ts';
import { VBX_DEFAULTS, vbx } from './vbx.ts';

export interface BayesianParameters {
  /** Recordings with less distinct speech are left to the linkage: there is too little evidence to weigh speakers by. */
  readonly minSeconds: number;
  /** Distance at which the tree is cut for the clusters to start from: low, because VBx merges and never splits. */
  readonly initialThreshold: number;
  /** Clusters to start from, at most. */
  readonly maxClusters: number;
  /** Fa of VBx: how much a second of speech counts. */
  readonly statisticsScale: number;
  /** Fb of VBx: the larger, the fewer speakers remain. */
  readonly speakerRegularisation: number;
  /** Speakers whose prior falls below this share of the largest are dropped. */
  readonly minPriorShare: number;
  /** So are those with less speech. */
  readonly minSpeakerSeconds: number;
}

/** What the Bayesian clustering looks at: local speakers with enough clean speech. */
export interface BayesianItems {
  /** Shifted embeddings. */
  readonly speakers: LocalSpeakers;
  /** [count] how much each counts in a centroid */
  readonly weights: Float64Array;
  /** [count] distinct seconds, how much evidence each is */
  readonly seconds: Float64Array;
  /** [count, phi.length] in the PLDA space */
  readonly features: Float64Array;
  readonly phi: Float64Array;
}

/**
 * Speakers by variational Bayes: VBx (see `vbx.ts`) in a PLDA space, started from a low cut of the linkage tree. Items count by
 * their distinct seconds, since overlapping windows hear the same speech; of a long recording it finds the number of speakers
 * better than any distance does. The same as `training/calibration/clustering.py`.
 *
 * @returns [speakers, dimension] unit centroids of the shifted embeddings, most speech first
 */
export function bayesianCentroids(
  items: BayesianItems,
  tree: readonly Merge[],
  parameters: BayesianParameters,
): Float32Array {
  const { speakers, weights, seconds, features, phi } = items;
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
  const { statisticsScale, speakerRegularisation } = parameters;
  const settings = { ...VBX_DEFAULTS, statisticsScale, speakerRegularisation, maxIterations: 40 };
  const { gamma, pi, speakers: found } = vbx(features, phi, initial, settings, seconds);
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
