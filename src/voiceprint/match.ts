import { assignOptimally } from '../diarization/numerics.ts';
import { probabilityOf } from './score.ts';

export interface MatchingOptions {
  /** 0…100: the least confidence of a match. */
  readonly threshold: number;
  /** Whether a voiceprint may match one speaker only. */
  readonly exclusive: boolean;
}

export interface SpeakerMatch {
  /** Index of the matched voiceprint, undefined for none. */
  readonly match: number | undefined;
  /** [voiceprints] 0…100 */
  readonly confidence: readonly number[];
}

/** A score of 0 is no match; the worst match that counts is worth this much. */
const LEAST_WORTH = 1e-3;
/** Log-odds beyond this are as good as certain, and more of them outweigh no other match… */
const CERTAIN_LOG_ODDS = 12;
/** …but decide between pairs that are all certain: how much each further one counts. */
const BEYOND_CERTAIN = 1e-6;

/**
 * Which speaker is whose voiceprint. With `exclusive`, the one-to-one assignment of the highest joint likelihood among the pairs
 * whose confidence reaches the threshold; without, each speaker's best.
 *
 * @param logOdds [speakers, voiceprints] of being the same person
 */
export function matchSpeakers(
  logOdds: Float64Array,
  speakers: number,
  voiceprints: number,
  { threshold, exclusive }: MatchingOptions,
): SpeakerMatch[] {
  const confidence = Array.from(logOdds, (value) => Math.round(100 * probabilityOf(value)));
  // What is shown decides: a confidence of 50 reaches a threshold of 50.
  const reaches = confidence.map((value) => value >= threshold);
  // With a low threshold somebody unlikely is better than nobody; likely ones are worth their log-odds, or several would be worth less than one.
  const likely = logOdds.map(levelled);
  const lowest = likely.reduce((least, value, index) => (reaches[index] ? Math.min(least, value) : least), 0);
  const worth = likely.map((value, index) => (reaches[index] ? value - lowest + LEAST_WORTH : 0));
  const chosen = exclusive ? assignOptimally(worth, speakers, voiceprints) : best(worth, speakers, voiceprints);
  return Array.from({ length: speakers }, (_, speaker) => {
    const column = chosen[speaker];
    const isMatch = column >= 0 && reaches[speaker * voiceprints + column];
    return {
      match: isMatch ? column : undefined,
      confidence: confidence.slice(speaker * voiceprints, (speaker + 1) * voiceprints),
    };
  });
}

/** Rises with the log-odds, hardly any more where they are certain. */
function levelled(logOdds: number): number {
  const bounded = Math.min(CERTAIN_LOG_ODDS, Math.max(-CERTAIN_LOG_ODDS, logOdds));
  return bounded + BEYOND_CERTAIN * (logOdds - bounded);
}

function best(worth: Float64Array, rows: number, columns: number): Int32Array {
  return Int32Array.from({ length: rows }, (_, row) => {
    const own = worth.subarray(row * columns, (row + 1) * columns);
    return own.indexOf(Math.max(...own));
  });
}

/**
 * How sure it is, 0…100, that each submitted voice talks in a turn: that one of the diarized speakers is that voice and talks.
 *
 * @param turn [speakers] 0…100, how sure it is that each diarized speaker talks in the turn
 * @param speakers [speakers] their matches
 */
export function turnConfidence(turn: readonly number[], speakers: readonly SpeakerMatch[]): number[] {
  const voiceprints = speakers[0]?.confidence.length ?? 0;
  return Array.from({ length: voiceprints }, (_, column) => {
    const silent = turn.reduce(
      (product, talks, speaker) => product * (1 - (talks / 100) * (speakers[speaker].confidence[column] / 100)),
      1,
    );
    return Math.round(100 * (1 - silent));
  });
}
