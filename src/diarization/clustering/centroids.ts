import type { LocalSpeakers } from '../local-speakers.ts';
import { dot, normalise } from '../vectors.ts';

/** Clusters by their centroids. */
export interface Clusters {
  readonly count: number;
  readonly dimension: number;
  /** [count, dimension], unit length */
  readonly centroids: Float32Array;
  /** [count] clean seconds of the items that made each centroid */
  readonly weights: Float64Array;
}

/** Sum of clean seconds per cluster, over all windows. */
export function clusterSeconds(speakers: LocalSpeakers, clusterOf: Int32Array): number[] {
  const sums: number[] = [];
  for (let row = 0; row < speakers.count; row++) {
    const cluster = clusterOf[row]!;
    while (sums.length <= cluster) sums.push(0);
    sums[cluster]! += speakers.cleanSeconds[row]!;
  }
  return sums;
}

/**
 * Centroids of the clusters to keep, weighted by clean speech; a local speaker without any counts a little, so that a cluster
 * of such speakers has a direction.
 */
export function centroidsOf(speakers: LocalSpeakers, clusterOf: Int32Array, keep: readonly boolean[]): Clusters {
  const { dimension, embeddings } = speakers;
  const target = new Int32Array(keep.length).fill(-1);
  let count = 0;
  keep.forEach((kept, cluster) => {
    if (kept) target[cluster] = count++;
  });
  const centroids = new Float32Array(count * dimension);
  const weights = new Float64Array(count);
  for (let row = 0; row < speakers.count; row++) {
    const cluster = target[clusterOf[row]!]!;
    if (cluster < 0) continue;
    const weight = Math.max(0.01, speakers.cleanSeconds[row]!);
    weights[cluster]! += weight;
    for (let d = 0; d < dimension; d++)
      centroids[cluster * dimension + d]! += weight * embeddings[row * dimension + d]!;
  }
  for (let cluster = 0; cluster < count; cluster++) normalise(centroids, cluster * dimension, dimension);
  return { count, dimension, centroids, weights };
}

/** Centroids of the clusters that have members; empty ones are left out. */
export function compact(speakers: LocalSpeakers, clusterOf: Int32Array, clusters: number): Clusters {
  const used = new Array<boolean>(clusters).fill(false);
  for (const cluster of clusterOf) used[cluster] = true;
  return centroidsOf(speakers, clusterOf, used);
}

/** Merges the two clusters with the most similar centroids until `max` are left. */
export function mergeClosest(clusters: Clusters, max: number): Clusters {
  const { dimension } = clusters;
  let rows = Array.from({ length: clusters.count }, (_, cluster) => ({
    centroid: clusters.centroids.slice(cluster * dimension, (cluster + 1) * dimension),
    weight: clusters.weights[cluster]!,
  }));
  while (rows.length > max) {
    let best = { i: 0, j: 1, similarity: Number.NEGATIVE_INFINITY };
    for (let i = 0; i < rows.length; i++) {
      for (let j = i + 1; j < rows.length; j++) {
        const similarity = dot(rows[i]!.centroid, 0, rows[j]!.centroid, 0, dimension);
        if (similarity > best.similarity) best = { i, j, similarity };
      }
    }
    const [a, b] = [rows[best.i]!, rows[best.j]!];
    const centroid = a.centroid.map((value, d) => a.weight * value + b.weight * b.centroid[d]!);
    normalise(centroid, 0, dimension);
    rows[best.i] = { centroid, weight: a.weight + b.weight };
    rows = rows.filter((_, index) => index !== best.j);
  }
  const centroids = new Float32Array(rows.length * dimension);
  rows.forEach(({ centroid }, index) => {
    centroids.set(centroid, index * dimension);
  });
  return { count: rows.length, dimension, centroids, weights: Float64Array.from(rows, ({ weight }) => weight) };
}
