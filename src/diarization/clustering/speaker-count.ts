import { normalise } from '../vectors.ts';
import type { ClusteringParameters, Items } from './types.ts';
import type { VbxResult } from './vbx.ts';

/** One speaker found: the weighted sum of its shifted embeddings [dimension], and the seconds of its speech. */
export interface SpeakerSum {
  readonly sum: Float64Array;
  readonly seconds: number;
}

/** The speakers of VBx that remain, most likely first; at least one. */
export function remaining(
  { gamma, pi, speakers }: VbxResult,
  seconds: Float64Array,
  { minPriorShare, minSpeakerSeconds }: Pick<ClusteringParameters, 'minPriorShare' | 'minSpeakerSeconds'>,
): number[] {
  const speech = Array.from({ length: speakers }, (_, k) =>
    seconds.reduce((sum, value, row) => sum + value * gamma[row * speakers + k], 0),
  );
  const all = Array.from(pi, (_, k) => k).sort((a, b) => pi[b] - pi[a] || a - b);
  const kept = all.filter((k) => pi[k] >= minPriorShare * pi[all[0]] && speech[k] >= minSpeakerSeconds);
  return kept.length > 0 ? kept : all.slice(0, 1);
}

/** What each of some of VBx's speakers was found in. @param shifted [items, dimension] */
export function sumsOf(
  { count, dimension, seconds }: Items,
  shifted: Float32Array,
  { gamma, speakers }: VbxResult,
  chosen: readonly number[],
): SpeakerSum[] {
  return chosen.map((k) => {
    const sum = new Float64Array(dimension);
    let total = 0;
    for (let row = 0; row < count; row++) {
      const weight = seconds[row] * gamma[row * speakers + k];
      total += weight;
      for (let d = 0; d < dimension; d++) sum[d] += weight * shifted[row * dimension + d];
    }
    return { sum, seconds: total };
  });
}

/**
 * Joins speakers until `most` are left, the pair with the lowest cost first. The cost is the distance of the two
 * centroids times the logarithm of their speech (its harmonic combination). The distance alone would join two people
 * with much speech before a short fragment of one of them, which is further from all centroids; Ward's criterion, with
 * the speech itself, would join a person with little speech before two fragments of one person.
 *
 * @param most speakers to leave, at most; at least one is left
 */
export function joinDown(speakers: readonly SpeakerSum[], most: number): SpeakerSum[] {
  const left = [...speakers];
  while (left.length > Math.max(1, most)) {
    let least = Number.POSITIVE_INFINITY;
    let pair: readonly [number, number] = [0, 1];
    for (let b = 1; b < left.length; b++) {
      for (let a = 0; a < b; a++) {
        const cost = (1 - similarityOf(left[a], left[b])) * speechWeight(left[a], left[b]);
        if (cost < least) [least, pair] = [cost, [a, b]];
      }
    }
    const [a, b] = pair;
    left[a] = {
      sum: left[a].sum.map((value, d) => value + left[b].sum[d]),
      seconds: left[a].seconds + left[b].seconds,
    };
    left.splice(b, 1);
  }
  return left;
}

/** [speakers, dimension], unit length, most speech first */
export function centroidsOfSums(speakers: readonly SpeakerSum[], dimension: number): Float32Array {
  const centroids = new Float32Array(speakers.length * dimension);
  [...speakers]
    .sort((a, b) => b.seconds - a.seconds)
    .forEach(({ sum }, index) => {
      centroids.set(sum, index * dimension);
      normalise(centroids, index * dimension, dimension);
    });
  return centroids;
}

/** Logarithm of the harmonic combination of the seconds of two speakers. */
function speechWeight(a: SpeakerSum, b: SpeakerSum): number {
  return Math.log1p((a.seconds * b.seconds) / (a.seconds + b.seconds));
}

/** Cosine of the centroids of two speakers. */
function similarityOf(a: SpeakerSum, b: SpeakerSum): number {
  return product(a.sum, b.sum) / Math.sqrt(product(a.sum, a.sum) * product(b.sum, b.sum));
}

function product(a: Float64Array, b: Float64Array): number {
  let sum = 0;
  for (let d = 0; d < a.length; d++) sum += a[d] * b[d];
  return sum;
}
