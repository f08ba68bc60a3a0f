import { release } from '../../audio/memory.ts';
import type { Items } from '../local-speakers.ts';
import { normalise } from '../numerics.ts';
import type { ClusteringParameters } from '../parameters.ts';

/** Parameters of VBx, by the paper's names. */
interface VbxParameters {
  /** Fa, scale of the sufficient statistics: how much one embedding counts. */
  readonly statisticsScale: number;
  /** Fb, regularisation of the speakers: the larger, the fewer remain. */
  readonly speakerRegularisation: number;
  /** Sharpness of the first responsibilities: softmax of the initial clusters times this. */
  readonly initSmoothing: number;
  readonly maxIterations: number;
  /** Stops when the evidence lower bound grows by less. */
  readonly epsilon: number;
}

/**
 * A speaker whose prior falls below this has no items left and gets none back: its responsibilities are some 1e-10.
 * Most of the speakers to start from end like this in the first iterations, and then cost no more time.
 */
const NOBODY = 1e-9;

/** Items have a share of most speakers that no digit of what follows shows: below it nothing is added up. */
const NOTHING = 1e-9;

/** Items that are worked on at a time, with a variable for each: the sums over them are written out four times. */
const ITEMS_AT_ONCE = 4;

export interface VbxResult {
  /** [items, speakers] responsibilities */
  readonly gamma: Float64Array;
  /** [speakers] priors; those of superfluous speakers fall to zero */
  readonly pi: Float64Array;
  readonly speakers: number;
  /** Evidence lower bound, (25): how well these speakers explain the items, less what they cost. */
  readonly bound: number;
}

/**
 * Variational Bayes clustering of embeddings in a PLDA space (identity within-speaker covariance, diagonal
 * between-speaker covariance), without the transition model: Landini et al., "Bayesian HMM clustering of x-vector
 * sequences (VBx) in speaker diarization", 2022; numbers in the comments are its equations. The mixture form is that of
 * pyannote's community-1 pipeline.
 *
 * @param features [items, dimension] in the PLDA space
 * @param phi [dimension] between-speaker variances
 * @param initial [items] clusters to start from, 0…speakers−1
 * @param options.weights [items] how often each item counts, once by default
 * @param options.pause called twice an iteration, and before the first
 */
export async function vbx(
  features: Float64Array,
  phi: Float64Array,
  initial: ArrayLike<number>,
  parameters: VbxParameters,
  options: { readonly weights?: ArrayLike<number>; readonly pause?: () => Promise<void> } = {},
): Promise<VbxResult> {
  const dimension = phi.length;
  const items = features.length / dimension;
  let speakers = 0;
  for (let item = 0; item < items; item++) speakers = Math.max(speakers, initial[item] + 1);
  const { statisticsScale: fa, speakerRegularisation: fb } = parameters;
  const { pause = async () => undefined } = options;
  const padded = ITEMS_AT_ONCE * Math.ceil(items / ITEMS_AT_ONCE);
  const weight = new Float64Array(padded);
  if (options.weights === undefined) weight.fill(1, 0, items);
  else weight.set(options.weights);
  const model: Mixture = {
    items,
    dimension,
    speakers,
    fa,
    fb,
    phi,
    weight,
    rho: new Float64Array(padded * dimension),
    constant: new Float64Array(items),
    alpha: new Float64Array(speakers * dimension),
    offset: new Float64Array(speakers),
    totals: new Float64Array(speakers),
    gamma: new Float64Array(padded * speakers),
  };
  prepare(model, features);
  setResponsibilities(model, initial, parameters.initSmoothing);
  let pi = new Float64Array(speakers).fill(1 / speakers);
  let lastBound = Number.NEGATIVE_INFINITY;
  for (let iteration = 0; iteration < parameters.maxIterations; iteration++) {
    const alive = Array.from(pi.keys()).filter((s) => pi[s] >= NOBODY);
    const nextPi = new Float64Array(speakers);
    await pause();
    const boundOfSpeakers = updateSpeakers(model, alive);
    await pause();
    const bound = boundOfSpeakers + updateResponsibilities(model, alive, pi, nextPi);
    const total = nextPi.reduce((sum, value) => sum + value, 0);
    pi = nextPi.map((value) => value / total);
    const isSettled = iteration > 0 && bound - lastBound < parameters.epsilon;
    lastBound = bound;
    if (isSettled) break;
  }
  await pause();
  release(model.rho, model.alpha);
  const gamma = model.gamma.slice(0, items * speakers);
  release(model.gamma);
  return { gamma, pi, speakers, bound: lastBound };
}

/** What the iterations work on; arrays by item are filled up with zeros to a multiple of four. */
interface Mixture {
  readonly items: number;
  readonly dimension: number;
  readonly speakers: number;
  readonly fa: number;
  readonly fb: number;
  /** [dimension] */
  readonly phi: Float64Array;
  /** [items] */
  readonly weight: Float64Array;
  /** [items, dimension] (18) */
  readonly rho: Float64Array;
  /** [items] of (23) */
  readonly constant: Float64Array;
  /** [speakers, dimension] (16) */
  readonly alpha: Float64Array;
  /** [speakers] terms of (23) that do not depend on the item */
  readonly offset: Float64Array;
  /** [speakers] */
  readonly totals: Float64Array;
  /** [items, speakers] responsibilities */
  readonly gamma: Float64Array;
}

function prepare({ items, dimension, phi, rho, constant }: Mixture, features: Float64Array): void {
  for (let item = 0; item < items; item++) {
    let squares = 0;
    for (let d = 0; d < dimension; d++) {
      const value = features[item * dimension + d];
      squares += value * value;
      rho[item * dimension + d] = value * Math.sqrt(phi[d]);
    }
    constant[item] = -0.5 * (squares + dimension * Math.log(2 * Math.PI));
  }
}

/** The speakers, given who the items are: (16), (17). @returns their part of the bound, (25) */
function updateSpeakers(model: Mixture, alive: readonly number[]): number {
  const { items, dimension, speakers, fa, fb, phi, weight, rho, alpha, offset, totals, gamma } = model;
  totals.fill(0);
  alpha.fill(0); // first the sums of the items
  // Four items at a time: a sum is read and written once for them.
  for (let item = 0; item < items; item += ITEMS_AT_ONCE) {
    const [second, third, fourth] = [item + 1, item + 2, item + 3];
    for (const s of alive) {
      const share0 = weight[item] * gamma[item * speakers + s];
      const share1 = weight[second] * gamma[second * speakers + s];
      const share2 = weight[third] * gamma[third * speakers + s];
      const share3 = weight[fourth] * gamma[fourth * speakers + s];
      const total = share0 + share1 + (share2 + share3);
      if (total < NOTHING) continue;
      totals[s] += total;
      for (let d = 0; d < dimension; d++) {
        alpha[s * dimension + d] +=
          share0 * rho[item * dimension + d] +
          share1 * rho[second * dimension + d] +
          (share2 * rho[third * dimension + d] + share3 * rho[fourth * dimension + d]);
      }
    }
  }
  let bound = 0;
  for (const s of alive) {
    let terms = 0;
    for (let d = 0; d < dimension; d++) {
      const inverse = 1 / (1 + (fa / fb) * totals[s] * phi[d]);
      const mean = (fa / fb) * inverse * alpha[s * dimension + d];
      alpha[s * dimension + d] = mean;
      terms -= 0.5 * (inverse + mean * mean) * phi[d];
      bound += fb * 0.5 * (Math.log(inverse) - inverse - mean * mean + 1);
    }
    offset[s] = terms;
  }
  return bound;
}

/** Who the items are, given the speakers: (23). @returns their part of the bound */
function updateResponsibilities(
  { items, dimension, speakers, fa, weight, rho, constant, alpha, offset, gamma }: Mixture,
  alive: readonly number[],
  pi: Float64Array,
  nextPi: Float64Array,
): number {
  const logPi = pi.map((value) => Math.log(value + 1e-8));
  const products = new Float64Array(ITEMS_AT_ONCE * alive.length);
  const score = new Float64Array(alive.length);
  let bound = 0;
  gamma.fill(0);
  for (let first = 0; first < items; first += ITEMS_AT_ONCE) {
    productsOfFour(rho, first, alpha, alive, dimension, products);
    for (let item = first; item < Math.min(first + ITEMS_AT_ONCE, items); item++) {
      const scale = fa * weight[item];
      let largest = Number.NEGATIVE_INFINITY;
      for (let at = 0; at < alive.length; at++) {
        const s = alive[at];
        const product = products[ITEMS_AT_ONCE * at + item - first];
        score[at] = scale * (product + offset[s] + constant[item]) + logPi[s];
        if (score[at] > largest) largest = score[at];
      }
      let sum = 0;
      for (let at = 0; at < alive.length; at++) {
        score[at] = Math.exp(score[at] - largest);
        sum += score[at];
      }
      bound += largest + Math.log(sum);
      for (let at = 0; at < alive.length; at++) {
        const responsibility = score[at] / sum;
        gamma[item * speakers + alive[at]] = responsibility;
        nextPi[alive[at]] += weight[item] * responsibility;
      }
    }
  }
  return bound;
}

/** [speakers alive, 4] products of four items with the means: a value of a mean is read once for them. */
function productsOfFour(
  rho: Float64Array,
  first: number,
  alpha: Float64Array,
  alive: readonly number[],
  dimension: number,
  out: Float64Array,
): void {
  const r0 = first * dimension;
  const r1 = r0 + dimension;
  const r2 = r1 + dimension;
  const r3 = r2 + dimension;
  for (let at = 0; at < alive.length; at++) {
    const mean = alive[at] * dimension;
    let sum0 = 0;
    let sum1 = 0;
    let sum2 = 0;
    let sum3 = 0;
    for (let d = 0; d < dimension; d++) {
      const value = alpha[mean + d];
      sum0 += rho[r0 + d] * value;
      sum1 += rho[r1 + d] * value;
      sum2 += rho[r2 + d] * value;
      sum3 += rho[r3 + d] * value;
    }
    out[ITEMS_AT_ONCE * at] = sum0;
    out[ITEMS_AT_ONCE * at + 1] = sum1;
    out[ITEMS_AT_ONCE * at + 2] = sum2;
    out[ITEMS_AT_ONCE * at + 3] = sum3;
  }
}

function setResponsibilities({ items, speakers, gamma }: Mixture, initial: ArrayLike<number>, smoothing: number): void {
  const high = Math.exp(smoothing) / (Math.exp(smoothing) + speakers - 1);
  const low = 1 / (Math.exp(smoothing) + speakers - 1);
  for (let item = 0; item < items; item++) {
    for (let s = 0; s < speakers; s++) gamma[item * speakers + s] = initial[item] === s ? high : low;
  }
}

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
