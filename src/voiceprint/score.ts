import type { SpeakerVoice } from '../diarization/diarization.ts';

/** How the cosine similarity of an embedder becomes a probability; fitted by `training/identification/fit.py`. */
export interface IdentificationParameters {
  /** Log-odds of being the same speaker: `slope · cosine + offset`. */
  readonly slope: number;
  readonly offset: number;
}

/** For embedders without values of their own: cosine similarities around 0.45 are as likely the same speaker as not. */
export const DEFAULT_IDENTIFICATION: IdentificationParameters = { slope: 16, offset: -7.2 };

/**
 * Log-odds beyond this are not told apart: more than any two voices have, and their probabilities are still numbers.
 */
const MAX_LOG_ODDS = 700;

/**
 * Calibrated log-odds that two voices are one person's: a logistic map (Platt scaling) of the cosine similarity of
 * their embeddings. An empty embedding, which nothing is known about, scores lowest.
 *
 * @param probes and references: voices of one embedder, embeddings of unit length
 * @returns [probes, references]
 */
export function logOddsOf(
  probes: readonly SpeakerVoice[],
  references: readonly SpeakerVoice[],
  { slope, offset }: IdentificationParameters,
): Float64Array {
  return Float64Array.from({ length: probes.length * references.length }, (_, index) => {
    const a = probes[Math.floor(index / references.length)].embedding;
    const b = references[index % references.length].embedding;
    if (a.length === 0 || b.length === 0) return -MAX_LOG_ODDS;
    const cosine = a.reduce((sum, value, d) => sum + value * b[d], 0);
    return Math.min(MAX_LOG_ODDS, Math.max(-MAX_LOG_ODDS, slope * cosine + offset));
  });
}

/** Log-odds → probability. */
export const probabilityOf = (logOdds: number): number => 1 / (1 + Math.exp(-logOdds));
