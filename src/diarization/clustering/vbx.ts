/** Parameters of VBx, by the paper's names. */
export interface VbxParameters {
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

export const VBX_DEFAULTS: VbxParameters = {
  statisticsScale: 0.07,
  speakerRegularisation: 0.8,
  initSmoothing: 7,
  maxIterations: 20,
  epsilon: 1e-4,
};

/**
 * A speaker whose prior falls below this has nobody left, and none comes back: its responsibilities are some 1e-10. Most of the speakers
 * to start from end like this in the first iterations, and then cost no more time.
 */
const NOBODY = 1e-9;

export interface VbxResult {
  /** [items, speakers] responsibilities */
  readonly gamma: Float64Array;
  /** [speakers] priors; those of superfluous speakers fall to zero */
  readonly pi: Float64Array;
  readonly speakers: number;
}

/**
 * Variational Bayes clustering of embeddings in a PLDA space (identity within-speaker covariance, diagonal between-speaker
 * covariance), without the transition model: Landini et al., "Bayesian HMM clustering of x-vector sequences (VBx) in speaker
 * diarization", 2022; numbers in the comments are its equations. The mixture form is that of pyannote's community-1 pipeline.
 *
 * @param features [items, dimension] in the PLDA space
 * @param phi [dimension] between-speaker variances
 * @param initial [items] clusters to start from, 0…speakers−1
 * @param options.weights [items] how often each item counts, once by default
 * @param options.pause called after each iteration
 */
export async function vbx(
  features: Float64Array,
  phi: Float64Array,
  initial: ArrayLike<number>,
  parameters: VbxParameters = VBX_DEFAULTS,
  options: { readonly weights?: ArrayLike<number>; readonly pause?: () => Promise<void> } = {},
): Promise<VbxResult> {
  const dimension = phi.length;
  const items = features.length / dimension;
  let speakers = 0;
  for (let item = 0; item < items; item++) speakers = Math.max(speakers, initial[item]! + 1);
  const { statisticsScale: fa, speakerRegularisation: fb } = parameters;
  const weight = options.weights ?? new Float64Array(items).fill(1);
  const gamma = initialResponsibilities(initial, items, speakers, parameters.initSmoothing);
  let pi = new Float64Array(speakers).fill(1 / speakers);

  const constant = new Float64Array(items); // per-item constant in (23)
  const rho = new Float64Array(features.length); // (18)
  for (let item = 0; item < items; item++) {
    let squares = 0;
    for (let d = 0; d < dimension; d++) {
      const value = features[item * dimension + d]!;
      squares += value * value;
      rho[item * dimension + d] = value * Math.sqrt(phi[d]!);
    }
    constant[item] = -0.5 * (squares + dimension * Math.log(2 * Math.PI));
  }

  const precision = new Float64Array(speakers * dimension); // inverse of L, (17)
  const alpha = new Float64Array(speakers * dimension); // (16)
  const totals = new Float64Array(speakers);
  const sums = new Float64Array(speakers * dimension);
  const score = new Float64Array(speakers);
  let lastBound = Number.NEGATIVE_INFINITY;
  for (let iteration = 0; iteration < parameters.maxIterations; iteration++) {
    let bound = 0;
    const alive = Array.from(pi.keys()).filter((s) => pi[s]! >= NOBODY);
    const offset = new Float64Array(speakers); // terms of (23) that do not depend on the item
    totals.fill(0);
    sums.fill(0);
    for (let item = 0; item < items; item++) {
      for (const s of alive) {
        const share = weight[item]! * gamma[item * speakers + s]!;
        totals[s]! += share;
        for (let d = 0; d < dimension; d++) sums[s * dimension + d]! += share * rho[item * dimension + d]!;
      }
    }
    for (const s of alive) {
      for (let d = 0; d < dimension; d++) {
        const inverse = 1 / (1 + (fa / fb) * totals[s]! * phi[d]!);
        const mean = (fa / fb) * inverse * sums[s * dimension + d]!;
        precision[s * dimension + d] = inverse;
        alpha[s * dimension + d] = mean;
        offset[s]! -= 0.5 * (inverse + mean * mean) * phi[d]!;
        bound += fb * 0.5 * (Math.log(inverse) - inverse - mean * mean + 1); // (25), speaker part
      }
    }
    const nextPi = new Float64Array(speakers);
    for (let item = 0; item < items; item++) {
      let largest = Number.NEGATIVE_INFINITY;
      gamma.fill(0, item * speakers, (item + 1) * speakers);
      for (const s of alive) {
        let product = 0;
        for (let d = 0; d < dimension; d++) product += rho[item * dimension + d]! * alpha[s * dimension + d]!;
        score[s] = fa * weight[item]! * (product + offset[s]! + constant[item]!) + Math.log(pi[s]! + 1e-8);
        largest = Math.max(largest, score[s]!);
      }
      let sum = 0;
      for (const s of alive) sum += Math.exp(score[s]! - largest);
      const evidence = largest + Math.log(sum);
      bound += evidence;
      for (const s of alive) {
        const responsibility = Math.exp(score[s]! - evidence);
        gamma[item * speakers + s] = responsibility;
        nextPi[s]! += weight[item]! * responsibility;
      }
    }
    const total = nextPi.reduce((sum, value) => sum + value, 0);
    pi = nextPi.map((value) => value / total);
    if (iteration > 0 && bound - lastBound < parameters.epsilon) break;
    lastBound = bound;
    await options.pause?.();
  }
  return { gamma, pi, speakers };
}

function initialResponsibilities(
  initial: ArrayLike<number>,
  items: number,
  speakers: number,
  smoothing: number,
): Float64Array {
  const gamma = new Float64Array(items * speakers);
  const high = Math.exp(smoothing) / (Math.exp(smoothing) + speakers - 1);
  const low = 1 / (Math.exp(smoothing) + speakers - 1);
  for (let item = 0; item < items; item++) {
    for (let s = 0; s < speakers; s++) gamma[item * speakers + s] = initial[item] === s ? high : low;
  }
  return gamma;
}
