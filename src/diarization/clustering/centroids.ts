import type { LocalSpeakers } from '../local-speakers.ts';
import { normalise } from '../vectors.ts';

/**
 * Weighted mean direction of the members of each cluster.
 *
 * @param clusterOf [count] cluster of each local speaker, −1 for none
 * @returns [clusters, dimension], unit length; zeros for a cluster without members
 */
export function centroidsOf(
  speakers: LocalSpeakers,
  weights: Float64Array,
  clusterOf: Int32Array,
  clusters: number,
): Float32Array {
  const { count, dimension, embeddings } = speakers;
  const sums = new Float64Array(clusters * dimension);
  for (let row = 0; row < count; row++) {
    const cluster = clusterOf[row];
    if (cluster < 0) continue;
    for (let d = 0; d < dimension; d++) {
      sums[cluster * dimension + d] += weights[row] * embeddings[row * dimension + d];
    }
  }
  const centroids = Float32Array.from(sums);
  for (let cluster = 0; cluster < clusters; cluster++) normalise(centroids, cluster * dimension, dimension);
  return centroids;
}

export interface SizeLimits {
  /** Clusters with less speech are dropped… */
  readonly minClusterSeconds: number;
  /** …and those with less than this share of the largest. The largest always stays. */
  readonly minClusterShare: number;
}

/**
 * Which clusters hold enough speech to be speakers.
 *
 * @param clusterOf [count], clusters numbered by first appearance
 * @param seconds [count] speech that each local speaker adds
 * @param scale factor on both limits
 * @returns their numbers, most speech first, at least one
 */
export function largeClusters(clusterOf: Int32Array, seconds: Float64Array, limits: SizeLimits, scale = 1): number[] {
  const sums: number[] = [];
  clusterOf.forEach((cluster, row) => {
    while (sums.length <= cluster) sums.push(0);
    sums[cluster] += seconds[row];
  });
  const largest = sums.reduce((most, sum) => Math.max(most, sum), Number.NEGATIVE_INFINITY);
  const needed = scale * Math.max(limits.minClusterSeconds, limits.minClusterShare * largest);
  const all = Array.from(sums, (_, cluster) => cluster);
  const kept = all.filter((cluster) => sums[cluster] >= needed);
  const chosen = kept.length > 0 ? kept : [sums.indexOf(largest)];
  return chosen.sort((a, b) => sums[b] - sums[a] || a - b);
}

/** [count] position of each local speaker's cluster in `chosen`, −1 where it was not chosen. */
export function renumber(clusterOf: Int32Array, chosen: readonly number[]): Int32Array {
  const position = new Map(chosen.map((cluster, index) => [cluster, index]));
  return clusterOf.map((cluster) => position.get(cluster) ?? -1);
}
