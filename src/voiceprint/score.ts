import { type Plda, project, type SpeakerVoice } from '../diarization/index.ts';
import { againstCohort, type PldaMean } from './cohort.ts';

/** How scores of an embedder become probabilities; fitted by `training/identification/fit.py`. */
export interface IdentificationParameters {
  /** What voices are compared by; `plda` needs that of the embedder. */
  readonly score: 'plda' | 'cosine';
  /** Log-odds of being the same speaker: `slope · score + offset`. */
  readonly slope: number;
  readonly offset: number;
  /** With a PLDA: seconds of speech that count as one observation more… */
  readonly secondsPerObservation: number;
  /** …and how many observations a voice is, at most: speech of one recording shares its channel. */
  readonly maxObservations: number;
  /** Of what a voice scores against the PLDA's cohort, so many of the highest are averaged and taken off its scores; absent for none. */
  readonly cohortTop?: number;
}

/** For embedders without values of their own: cosine similarities around 0.45 are as likely the same speaker as not. */
export const DEFAULT_IDENTIFICATION: IdentificationParameters = {
  score: 'cosine',
  slope: 16,
  offset: -7.2,
  secondsPerObservation: 4,
  maxObservations: 3,
};

/** Log-odds beyond this are not told apart: more than any two voices have, and their probabilities are still numbers. */
const MAX_LOG_ODDS = 700;

/** Compares voices with references that stay the same: what is known of these is worked out once. */
export class VoiceScorer {
  readonly #score: (probes: readonly SpeakerVoice[]) => Score;

  /**
   * @param references voices of one embedder
   * @param plda that of the embedder, where voices are compared by one
   */
  constructor(
    private readonly references: readonly SpeakerVoice[],
    private readonly parameters: IdentificationParameters,
    plda: Plda | undefined,
  ) {
    if (parameters.score === 'plda' && plda === undefined) throw new Error('the PLDA of the embedder is missing');
    this.#score =
      parameters.score === 'plda'
        ? pldaScores(references, parameters, plda!)
        : (probes) => cosineScores(probes, references);
  }

  /**
   * Calibrated log-odds that two voices are one person's. The score of a PLDA is the log-likelihood ratio of means of several
   * observations (Prince and Elder, 2007), less what the two score against strangers: see `cohort.ts`. A logistic map (Platt scaling) makes log-odds of
   * it, or of the cosine similarity. An empty embedding, which nothing is known about, scores lowest.
   *
   * @returns [probes, references]
   */
  logOdds(probes: readonly SpeakerVoice[]): Float64Array {
    const { references, parameters } = this;
    const score = this.#score(probes);
    return Float64Array.from({ length: probes.length * references.length }, (_, index) => {
      const [row, column] = [Math.floor(index / references.length), index % references.length];
      if (probes[row].embedding.length === 0 || references[column].embedding.length === 0) return -MAX_LOG_ODDS;
      const logOdds = parameters.slope * score(row, column) + parameters.offset;
      return Math.min(MAX_LOG_ODDS, Math.max(-MAX_LOG_ODDS, logOdds));
    });
  }
}

/** The same for references that are compared once. */
export const logOddsOf = (
  probes: readonly SpeakerVoice[],
  references: readonly SpeakerVoice[],
  parameters: IdentificationParameters,
  plda: Plda | undefined,
): Float64Array => new VoiceScorer(references, parameters, plda).logOdds(probes);

/** Log-odds → probability. */
export const probabilityOf = (logOdds: number): number => 1 / (1 + Math.exp(-logOdds));

type Score = (row: number, column: number) => number;

function cosineScores(probes: readonly SpeakerVoice[], references: readonly SpeakerVoice[]): Score {
  return (row, column) => {
    const [a, b] = [probes[row].embedding, references[column].embedding];
    return a.reduce((sum, value, d) => sum + value * b[d], 0);
  };
}

function pldaScores(
  references: readonly SpeakerVoice[],
  parameters: IdentificationParameters,
  plda: Plda,
): (probes: readonly SpeakerVoice[]) => Score {
  const projected = (voice: SpeakerVoice) =>
    voice.embedding.length === 0 ? new Float64Array(plda.outputs) : project(plda, voice.embedding, 1);
  const observations = ({ secondsAlone }: SpeakerVoice) =>
    Math.min(parameters.maxObservations, 1 + secondsAlone / parameters.secondsPerObservation);
  const { cohortTop = 0 } = parameters;
  if (cohortTop > 0 && plda.cohort === undefined) throw new Error('the PLDA has no cohort');
  const scored = (voice: SpeakerVoice) => {
    const mean = { at: projected(voice), within: 1 / observations(voice) };
    const strangers = cohortTop > 0 && voice.embedding.length > 0 ? againstCohort(mean, plda, cohortTop) : 0;
    return { mean, strangers };
  };
  const b = references.map(scored);
  return (probes) => {
    const a = probes.map(scored);
    return (row, column) => {
      const [x, y] = [a[row], b[column]];
      return (likelihoodRatio(x.mean, y.mean, plda.phi) - (x.strangers + y.strangers) / 2) / plda.outputs;
    };
  };
}

/**
 * Log-likelihood ratio of two means x, y with variances v, w within a speaker and φ between: as one speaker they are jointly
 * normal with covariance φ, as two independent.
 */
function likelihoodRatio(x: PldaMean, y: PldaMean, phi: Float64Array): number {
  let sum = 0;
  for (let d = 0; d < phi.length; d++) {
    const between = phi[d];
    const [a, b] = [between + x.within, between + y.within];
    const determinant = a * b - between * between;
    const [p, q] = [x.at[d], y.at[d]];
    const joint = (b * p * p - 2 * between * p * q + a * q * q) / determinant;
    const apart = (p * p) / a + (q * q) / b;
    sum += 0.5 * (apart - joint + Math.log((a * b) / determinant));
  }
  return sum;
}
