import type { Plda } from '../diarization/index.ts';

/** The mean of some observations of a voice in the space of a PLDA, and the variance that their number leaves it. */
export interface PldaMean {
  /** [outputs] */
  readonly at: Float64Array;
  readonly within: number;
}

/**
 * What a voice scores against strangers: the mean of its highest log-likelihood ratios to the pieces of a cohort, one observation each. Voices of few
 * seconds and bad lines are like many people; taking this off makes scores of different voices mean the same (adaptive score
 * normalisation: Matějka et al., "Analysis of score normalization in multilingual speaker recognition", Interspeech 2017, without the
 * division by the deviation, which did not help).
 *
 * @param plda with a cohort
 * @param top how many are averaged
 */
export function againstCohort(voice: PldaMean, { phi, outputs, cohort }: Plda, top: number): number {
  const { values, scale } = cohort!;
  // The ratio of two means, sorted by powers of the cohort's value: 0.5 (c0 + c1 y + c2 y²) a dimension.
  const linear = new Float64Array(outputs);
  const square = new Float64Array(outputs);
  let constant = 0;
  for (let d = 0; d < outputs; d++) {
    const between = phi[d];
    const [a, b] = [between + voice.within, between + 1];
    const determinant = a * b - between * between;
    const x = voice.at[d];
    constant += x * x * (1 / a - b / determinant) + Math.log((a * b) / determinant);
    linear[d] = (2 * between * x * scale) / determinant;
    square[d] = (1 / b - a / determinant) * scale * scale;
  }
  const count = values.length / outputs;
  const scores = new Float64Array(count);
  for (let row = 0; row < count; row++) {
    let sum = constant;
    for (let d = 0; d < outputs; d++) {
      const y = values[row * outputs + d];
      sum += y * (linear[d] + square[d] * y);
    }
    scores[row] = 0.5 * sum;
  }
  const highest = scores.sort().subarray(-top);
  return highest.reduce((sum, score) => sum + score, 0) / highest.length;
}
