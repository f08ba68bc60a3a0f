import { release } from '../audio/memory.ts';
import { likenessTo } from './clustering/cluster.ts';
import type { ClusterModel } from './clustering/types.ts';
import type { FrameTracks } from './diarization.ts';
import type { DiarizationSettings } from './parameters.ts';
import { type Parts, readAhead } from './parts.ts';
import { SUBSEGMENT_SHIFT_SECONDS, type Subsegments } from './subsegments.ts';

/** Subsegments, by index, that belong to a speaker whatever the votes say: the cluster of each. */
export type Claims = ReadonlyMap<number, number>;

interface Candidate {
  readonly cluster: number;
  readonly index: number;
  /** Cosine similarity to the cluster's centroid, less that to the closest other one. */
  readonly margin: number;
}

/**
 * Finds a subsegment for each speaker who is wanted and yet outvoted in every frame: the one that sounds most like that
 * speaker beside all others. Reads the embeddings of all parts once.
 *
 * @param unheard clusters without a turn
 * @param before claims that stay
 * @param isHeard of a subsegment, whether a claim to it gives anybody a turn
 * @returns `before` and one more for each of `unheard`, as long as there are subsegments
 */
export async function claimsOf(
  parts: Parts,
  model: ClusterModel,
  unheard: readonly number[],
  before: Claims,
  isHeard: (index: number) => boolean,
  pause: () => Promise<void>,
): Promise<Claims> {
  // As many candidates each as there are claimants: nobody can be left without one by the others.
  const best = unheard.map((): Candidate[] => []);
  for await (const { speakers, subsegments } of readAhead(parts.count, parts.readEmbeddings)) {
    gather(subsegments, model, unheard, (index) => !before.has(index) && isHeard(index), best);
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

/**
 * Whether a claim to a subsegment can change a turn. In silence and in crosstalk it changes nothing.
 *
 * @param tracks of any round: boosts and claims do not change how many people talk at once
 * @returns whether exactly one person talks for at least the minimum duration of a turn in the subsegment's half second
 */
export function hearingOf(
  { speech, crosstalk, resolutionSeconds }: Pick<FrameTracks, 'speech' | 'crosstalk' | 'resolutionSeconds'>,
  {
    countBias,
    minDurationOnSeconds,
  }: Pick<DiarizationSettings['reconstruction'], 'countBias' | 'minDurationOnSeconds'>,
): (index: number) => boolean {
  const framesPerClaim = SUBSEGMENT_SHIFT_SECONDS / resolutionSeconds;
  const fewest = Math.max(1, Math.ceil(minDurationOnSeconds / resolutionSeconds));
  return (index) => {
    const from = Math.max(0, Math.round((index - 0.5) * framesPerClaim));
    const to = Math.min(speech.length, Math.round((index + 0.5) * framesPerClaim));
    let alone = 0;
    for (let frame = from; frame < to; frame++) {
      const atOnce = (speech[frame] + crosstalk[frame]) / 255 + countBias;
      if (atOnce > 0.5 && atOnce < 1.5) alone++;
    }
    return alone >= fewest;
  };
}

function gather(
  { count, dimension, indices, embeddings }: Subsegments,
  model: ClusterModel,
  unheard: readonly number[],
  mayClaim: (index: number) => boolean,
  best: readonly Candidate[][],
): void {
  const scratch = new Float32Array(dimension);
  const likeness = new Float32Array(model.clusters);
  for (let row = 0; row < count; row++) {
    const index = indices[row];
    if (!mayClaim(index)) continue;
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
