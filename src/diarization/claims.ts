import { release } from '../audio/memory.ts';
import type { ClusterModel } from './clustering/strategy.ts';
import type { Parts } from './parts.ts';
import type { Subsegments } from './subsegments.ts';
import { dot, normalise } from './vectors.ts';

/** Subsegments, by index, that belong to a speaker whatever the votes say: the cluster of each. */
export type Claims = ReadonlyMap<number, number>;

interface Candidate {
  readonly cluster: number;
  readonly index: number;
  /** Cosine similarity to the cluster's centroid, less that to the closest other one. */
  readonly margin: number;
}

/**
 * Finds a subsegment for each speaker who is wanted and yet outvoted in every frame: the one that sounds most like that speaker
 * beside all others. Reads the embeddings of all parts once.
 *
 * @param unheard clusters without a turn
 * @param before claims that stay
 * @returns `before` and one more for each of `unheard`, as long as there are subsegments
 */
export async function claimsOf(
  parts: Parts,
  model: ClusterModel,
  unheard: readonly number[],
  before: Claims,
  pause: () => Promise<void>,
): Promise<Claims> {
  // As many candidates each as there are claimants: nobody can be left without one by the others.
  const best = unheard.map((): Candidate[] => []);
  for (let part = 0; part < parts.count; part++) {
    const { speakers, subsegments } = await parts.readEmbeddings(part);
    gather(subsegments, model, unheard, before, best);
    release(speakers.embeddings, subsegments.embeddings);
    await pause();
  }
  const claims = new Map(before);
  const served = new Set<number>();
  for (const { cluster, index } of best.flat().sort(byMargin)) {
    if (served.has(cluster) || claims.has(index)) continue;
    claims.set(index, cluster);
    served.add(cluster);
  }
  return claims;
}

function gather(
  { count, dimension, indices, embeddings }: Subsegments,
  { clusters, shift, centroids }: ClusterModel,
  unheard: readonly number[],
  before: Claims,
  best: readonly Candidate[][],
): void {
  const vector = new Float32Array(dimension);
  const similarities = new Float32Array(clusters);
  for (let row = 0; row < count; row++) {
    const index = indices[row]!;
    if (before.has(index)) continue;
    for (let d = 0; d < dimension; d++) vector[d] = embeddings[row * dimension + d]! - shift[d]!;
    normalise(vector, 0, dimension);
    for (let cluster = 0; cluster < clusters; cluster++) {
      similarities[cluster] = dot(vector, 0, centroids, cluster * dimension, dimension);
    }
    unheard.forEach((cluster, at) => {
      const closest = similarities.reduce(
        (most, value, other) => (other === cluster ? most : Math.max(most, value)),
        -1,
      );
      const ranked = best[at]!;
      ranked.push({ cluster, index, margin: similarities[cluster]! - closest });
      ranked.sort(byMargin);
      if (ranked.length > unheard.length) ranked.pop();
    });
  }
}

function byMargin(a: Candidate, b: Candidate): number {
  return b.margin - a.margin || a.index - b.index || a.cluster - b.cluster;
}
