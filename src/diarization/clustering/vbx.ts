import { release } from '../../audio/memory.ts';
import type { Items } from '../local-speakers.ts';
import { normalise } from '../numerics.ts';

/** Parameters of VBx, by the paper's names. */
interface VbxParameters {
  /** Fa, scale of the sufficient statistics: how much one embedding counts. */
  readonly statisticsScale: number;
  /** Fb, regularisation of the speakers: the larger, the fewer remain. */
  readonly speakerRegularisation: number;
  /** Sharpness of the first responsibilities: softmax of the initial clusters times this. */
  readonly initSmoothing: number;
  readonly maxIterations: number;
  /** The iterations stop when the evidence lower bound grows by less. */
  readonly epsilon: number;
}

/**
 * Speakers with a smaller prior are skipped. Their responsibilities are about 1e-10 and do not grow again. Most initial
 * speakers fall below it within a few iterations.
 */
const MIN_PRIOR = 1e-9;

/** Smaller responsibilities are not added up: they would not change a digit of the sums. */
const MIN_RESPONSIBILITY = 1e-9;

/** Items per loop pass; the loops are unrolled by this factor. */
const ITEMS_AT_ONCE = 4;

export interface VbxResult {
  /** [items, speakers] responsibilities */
  readonly gamma: Float64Array;
  /** [speakers] priors; those of superfluous speakers approach zero */
  readonly pi: Float64Array;
  readonly speakers: number;
  /** Evidence lower bound, (25). */
  readonly bound: number;
}

/**
 * Variational Bayes clustering of embeddings in a PLDA space (identity within-speaker covariance, diagonal
 * between-speaker covariance), without the transition model: Landini et al., "Bayesian HMM clustering of x-vector
 * sequences (VBx) in speaker diarization", 2022; numbers in the comments are its equations. The mixture form is from
 * pyannote's community-1 pipeline.
 *
 * @param features [items, dimension] in the PLDA space
 * @param phi [dimension] between-speaker variances
 * @param initial [items] clusters to start from, 0…speakers−1
 * @param options.weights [items] weight of each item, 1 by default
 * @param options.pause called before the first iteration and twice in each
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
    const alive = Array.from(pi.keys()).filter((s) => pi[s] >= MIN_PRIOR);
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

/** State of the iterations; arrays by item are padded with zeros to a multiple of four. */
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

/** Updates the speakers from the responsibilities: (16), (17). @returns the speakers' term of the bound, (25) */
function updateSpeakers(model: Mixture, alive: readonly number[]): number {
  const { items, dimension, speakers, fa, fb, phi, weight, rho, alpha, offset, totals, gamma } = model;
  totals.fill(0);
  alpha.fill(0); // holds the sums of the items first
  // Four items at a time, so that each sum is read and written once for the four.
  for (let item = 0; item < items; item += ITEMS_AT_ONCE) {
    const [second, third, fourth] = [item + 1, item + 2, item + 3];
    for (const s of alive) {
      const share0 = weight[item] * gamma[item * speakers + s];
      const share1 = weight[second] * gamma[second * speakers + s];
      const share2 = weight[third] * gamma[third * speakers + s];
      const share3 = weight[fourth] * gamma[fourth * speakers + s];
      const total = share0 + share1 + (share2 + share3);
      if (total < MIN_RESPONSIBILITY) continue;
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

/** Updates the responsibilities from the speakers: (23). @returns the items' term of the bound */
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

/** [speakers alive, 4] products of four items with the means; each value of a mean is read once for the four. */
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

/** A speaker that VBx found: the weighted sum [dimension] of its shifted embeddings, and its seconds of speech. */
export interface SpeakerSum {
  readonly sum: Float64Array;
  readonly seconds: number;
}

/** Speakers of VBx who were not skipped, highest prior first. */
export function speakersOf({ pi }: VbxResult): number[] {
  return Array.from(pi.keys())
    .filter((k) => pi[k] >= MIN_PRIOR)
    .sort((a, b) => pi[b] - pi[a] || a - b);
}

/** Sums of the chosen speakers of VBx. @param shifted [items, dimension] */
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
 * Joins the pair of speakers with the lowest cost until at most `maxSpeakers` remain. The cost is the distance of the
 * two centroids times the logarithm of the harmonic combination of their seconds. The distance alone would join two
 * people with much speech first: a short fragment of one of them is further from all centroids. Ward's criterion, which
 * weights by the seconds themselves, would join a person with little speech before two fragments of one person.
 *
 * @param maxSpeakers at least one speaker remains
 */
export function joinToCount(speakers: readonly SpeakerSum[], maxSpeakers: number): SpeakerSum[] {
  const kept = [...speakers];
  while (kept.length > Math.max(1, maxSpeakers)) {
    let lowestCost = Number.POSITIVE_INFINITY;
    let pair: readonly [number, number] = [0, 1];
    for (let b = 1; b < kept.length; b++) {
      for (let a = 0; a < b; a++) {
        const cost = (1 - similarityOf(kept[a], kept[b])) * speechWeight(kept[a], kept[b]);
        if (cost < lowestCost) [lowestCost, pair] = [cost, [a, b]];
      }
    }
    const [a, b] = pair;
    kept[a] = {
      sum: kept[a].sum.map((value, d) => value + kept[b].sum[d]),
      seconds: kept[a].seconds + kept[b].seconds,
    };
    kept.splice(b, 1);
  }
  return kept;
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

/** Logarithm of the harmonic combination of two speakers' seconds. */
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
