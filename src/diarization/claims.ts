import { release } from '../audio/memory.ts';
import { likenessTo } from './clustering/likeness.ts';
import type { ClusterModel } from './clustering/strategy.ts';
import { type Parts, readAhead } from './parts.ts';
import type { Subsegments } from './subsegments.ts';

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
  for await (const { speakers, subsegments } of readAhead(parts.count, parts.readEmbeddings)) {
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
  model: ClusterModel,
  unheard: readonly number[],
  before: Claims,
  best: readonly Candidate[][],
): void {
  const scratch = new Float32Array(dimension);
  const likeness = new Float32Array(model.clusters);
  for (let row = 0; row < count; row++) {
    const index = indices[row];
    if (before.has(index)) continue;
    likenessTo(model, embeddings, row, likeness, scratch);
    const { closest, first, second } = twoClosest(likeness);
    unheard.forEach((cluster, at) => {
      const margin = likeness[cluster] - (cluster === closest ? second : first);
      const ranked = best[at];
      const isFull = ranked.length === unheard.length;
      // Rows come in the order of their indices, so that one that is only as good stays behind.
      if (isFull && margin <= ranked.at(-1)!.margin) return;
      if (isFull) ranked.pop();
      ranked.push({ cluster, index, margin });
      ranked.sort(byMargin);
    });
  }
}

/** The cluster that is most alike, how much, and how much the next one. */
function twoClosest(likeness: Float32Array): { closest: number; first: number; second: number } {
  let closest = -1;
  let [first, second] = [-1, -1];
  likeness.forEach((value, cluster) => {
    if (value > first || closest < 0) [closest, first, second] = [cluster, value, first];
    else if (value > second) second = value;
  });
  return { closest, first, second };
}

function byMargin(a: Candidate, b: Candidate): number {
  return b.margin - a.margin || a.index - b.index || a.cluster - b.cluster;
}
