/** Calibration of confidence values: logistic regression on the log-odds of the raw probability (Platt scaling). */
export interface ConfidenceParameters {
  readonly slope: number;
  readonly offset: number;
}

/** Probabilities nearer to 0 or 1 than this are not told apart. */
const MARGIN = 1e-4;

/**
 * Raw probability that a frame's decision is right, speakers taken as independent: the product, over all speakers, of the
 * probability that each is active where the decision has it active, and silent where not.
 *
 * @param probabilities [speakers] that each is active in the frame
 * @param active [speakers] the decision
 */
export function decisionProbability(probabilities: ArrayLike<number>, active: ArrayLike<number>): number {
  let product = 1;
  for (let speaker = 0; speaker < probabilities.length; speaker++) {
    const probability = Math.min(1, Math.max(0, probabilities[speaker]));
    product *= active[speaker] !== 0 ? probability : 1 - probability;
  }
  return product;
}

/** Raw probability → calibrated probability: `sigmoid(slope * logit(raw) + offset)`. */
export function calibrate(raw: number, parameters: ConfidenceParameters): number {
  const clipped = Math.min(1 - MARGIN, Math.max(MARGIN, raw));
  const logOdds = Math.log(clipped / (1 - clipped));
  return 1 / (1 + Math.exp(-(parameters.slope * logOdds + parameters.offset)));
}
