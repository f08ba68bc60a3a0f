import { type DiarizationError, pool, rate } from './der.ts';

/** What was measured on one set of recordings, in the order of the recordings. */
export interface SetErrors {
  readonly set: string;
  readonly errors: readonly DiarizationError[];
}

/** In per cent. */
export interface MeanOverSets {
  readonly mean: number;
  /** Bounds of the 95 % interval. */
  readonly low: number;
  readonly high: number;
}

/** Not part of the mean: parameters were chosen on such conversations. */
const ONLY_REPORTED = 'simulated';
const RESAMPLINGS = 2000;

/** DER of a set; of monologues the confusion alone, because their references contain the pauses too. */
export function rateOfSet({ set, errors }: SetErrors): number {
  const { der, confusion } = rate(pool(errors));
  return set === 'monologues' ? confusion : der;
}

/**
 * Mean of the sets' error rates, every set with the same weight, and its 95 % percentile bootstrap interval (Efron,
 * 1979): the recordings of every set are resampled with replacement 2,000 times. The seed is fixed.
 */
export function meanOverSets(all: readonly SetErrors[]): MeanOverSets {
  const sets = all.filter(({ set }) => set !== ONLY_REPORTED);
  const meanOf = (drawn: readonly SetErrors[]): number =>
    drawn.reduce((total, one) => total + rateOfSet(one), 0) / drawn.length;
  const random = mulberry32(1);
  const means = Array.from({ length: RESAMPLINGS }, () =>
    meanOf(
      sets.map(({ set, errors }) => ({
        set,
        errors: errors.map(() => errors[Math.floor(random() * errors.length)]),
      })),
    ),
  ).sort((a, b) => a - b);
  const at = (share: number): number => means[Math.round(share * (RESAMPLINGS - 1))];
  return { mean: meanOf(sets), low: at(0.025), high: at(0.975) };
}

/** Numbers in [0, 1) from a seed (mulberry32, public domain). */
function mulberry32(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}
