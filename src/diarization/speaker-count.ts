import type { CountMargins, SpeakerBounds } from './clustering/cluster.ts';

/** How sure the number of speakers is. */
export interface SpeakerCount {
  readonly estimate: number;
  /** Probability that the estimate is right, 0…100. */
  readonly confidence: number;
  /** At most two other numbers with their probabilities, the most likely first; all together at most 100. */
  readonly alternatives: readonly { readonly count: number; readonly confidence: number }[];
}

/**
 * Log-odds of fewer and of more speakers against the number found, by the margins of the count: a logistic regression
 * on 293 labelled and generated recordings, checked on sets that were left out
 * (`training/experiments/clustering-of-v6.md`; `training/calibration/counts.py` fits it again).
 */
const FEWER = { offset: 0.8, perStep: -1.05 };
const MORE = { offset: -0.1, perStep: -0.55 };
/** How often a number that is too high, or too low, is so by one. */
const ONE_FEWER = 0.64;
const ONE_MORE = 0.85;

/**
 * The number of speakers with its confidence.
 *
 * @param found number of speakers in the result
 * @param bounds of the request: numbers outside are impossible
 */
export function speakerCountOf(found: number, margins: CountMargins, bounds: SpeakerBounds): SpeakerCount {
  const isFewerPossible = found > Math.max(1, bounds.min);
  const isMorePossible = found < bounds.max;
  const fewer = isFewerPossible ? Math.exp(FEWER.offset + FEWER.perStep * margins.fewer) : 0;
  const more = isMorePossible ? Math.exp(MORE.offset + MORE.perStep * margins.more) : 0;
  const percent = (odds: number) => Math.floor((100 * odds) / (1 + fewer + more));
  const alternatives = [
    { count: found - 1, confidence: percent(ONE_FEWER * fewer) },
    { count: found + 1, confidence: percent(ONE_MORE * more) },
  ];
  return {
    estimate: found,
    confidence: percent(1),
    alternatives: alternatives
      .filter(({ confidence }) => confidence > 0)
      .sort((a, b) => b.confidence - a.confidence || a.count - b.count),
  };
}

/** The number of speakers of channels that were diarized separately; absent if it is for one of them. */
export function joinCounts(counts: readonly (SpeakerCount | undefined)[]): SpeakerCount | undefined {
  let estimate = 0;
  let probability = 1;
  for (const count of counts) {
    if (count === undefined) return undefined;
    estimate += count.estimate;
    probability *= count.confidence / 100;
  }
  return { estimate, confidence: Math.floor(100 * probability), alternatives: [] };
}

/** Share of the speech whose speaker is right although the number of speakers is wrong, relative to a right number. */
const RIGHT_DESPITE_WRONG_COUNT = 0.75;

/** Factor on the confidences of frames and turns: they were calibrated without doubt about the number of speakers. */
export function confidenceFactor({ confidence }: SpeakerCount): number {
  const right = confidence / 100;
  return right + (1 - right) * RIGHT_DESPITE_WRONG_COUNT;
}
