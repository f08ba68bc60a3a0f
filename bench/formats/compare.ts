/** How one decode compares with another of the same recording. */
export interface Comparison {
  /** Signal-to-noise ratio in dB at the best offset; infinite when every sample is the same. */
  readonly snrDb: number;
  /** Samples that ours is longer. */
  readonly extraSamples: number;
  /** Samples that ours is late. */
  readonly offsetSamples: number;
}

/** Offsets that are tried, samples either way. */
const MAX_OFFSET = 4096;
/** Samples that the search for the offset looks at. */
const WINDOW = 16384;
/** From here on an offset of 0 needs no search. */
const CLEAR_SNR_DB = 20;

/** Compares `ours` with `reference`, both mono at one rate. */
export function compare(ours: Float32Array, reference: Float32Array): Comparison {
  const atZero = snrDb(ours, reference, 0);
  const offsetSamples = atZero >= CLEAR_SNR_DB ? 0 : bestOffset(ours, reference);
  return {
    snrDb: offsetSamples === 0 ? atZero : snrDb(ours, reference, offsetSamples),
    extraSamples: ours.length - reference.length,
    offsetSamples,
  };
}

/** Power of `reference` over the power of the difference where both are, with `ours` shifted back by `offset`. */
function snrDb(ours: Float32Array, reference: Float32Array, offset: number): number {
  const from = Math.max(0, -offset);
  const to = Math.min(reference.length, ours.length - offset);
  let signal = 0;
  let noise = 0;
  for (let i = from; i < to; i++) {
    signal += reference[i] ** 2;
    noise += (reference[i] - ours[i + offset]) ** 2;
  }
  if (noise === 0) return to > from ? Number.POSITIVE_INFINITY : Number.NEGATIVE_INFINITY;
  return 10 * Math.log10(signal / noise);
}

/** The offset with the largest correlation over a window in the middle. */
function bestOffset(ours: Float32Array, reference: Float32Array): number {
  const length = Math.min(WINDOW, reference.length);
  const start = Math.floor((reference.length - length) / 2);
  let best = 0;
  let bestSum = Number.NEGATIVE_INFINITY;
  for (let offset = -MAX_OFFSET; offset <= MAX_OFFSET; offset++) {
    let sum = 0;
    const from = Math.max(start, -offset);
    const to = Math.min(start + length, ours.length - offset);
    for (let i = from; i < to; i++) sum += reference[i] * ours[i + offset];
    if (sum > bestSum) {
      bestSum = sum;
      best = offset;
    }
  }
  return best;
}

/** Largest difference of two decodes of the same length, relative to full scale; a different length counts as 1. */
export function worstDifference(a: Float32Array, b: Float32Array): number {
  if (a.length !== b.length) return 1;
  let worst = 0;
  for (let i = 0; i < a.length; i++) worst = Math.max(worst, Math.abs(a[i] - b[i]));
  return worst;
}
