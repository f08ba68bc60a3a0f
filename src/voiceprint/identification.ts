import {
  byLabel,
  type Diarization,
  joined,
  type OutputFlags,
  type SpeakerVoice,
  speakerLabel,
  writeOutput,
} from '../diarization/diarization.ts';
import { assignOptimally } from '../diarization/numerics.ts';
import { hasEnoughSpeech } from './enrol.ts';
import { encodeVoiceprint } from './voiceprint.ts';

/** How the cosine similarity of an embedder becomes a probability; fitted by `training/identification/fit.py`. */
export interface IdentificationParameters {
  /** Log-odds of being the same speaker: `slope · cosine + offset`. */
  readonly slope: number;
  readonly offset: number;
}

/** For embedders without values of their own: cosine similarities around 0.45 are as likely the same speaker as not. */
export const DEFAULT_IDENTIFICATION: IdentificationParameters = { slope: 16, offset: -7.2 };

/**
 * Log-odds beyond this are clamped: more than any two voices have, and their probabilities are still numbers.
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

export interface MatchingOptions {
  /** 0…100: the least confidence of a match. */
  readonly threshold: number;
  /** Whether a voiceprint may match one speaker only. */
  readonly exclusive: boolean;
}

interface SpeakerMatch {
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
 * Which speaker is whose voiceprint. With `exclusive`, the one-to-one assignment of the highest joint likelihood among
 * the pairs whose confidence reaches the threshold; without, each speaker's best.
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
  // With a low threshold an unlikely match is better than none; likely ones are worth their log-odds, or several
  // would be worth less than one.
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
 * How sure it is, 0…100, that each submitted voice talks in a turn: that one of the diarized speakers is that voice and
 * talks.
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

/** Member of a diarize output: a voiceprint for each speaker with enough speech. @param voices [speakers] */
export function* voiceprintsMember(voices: readonly SpeakerVoice[]): Generator<string> {
  const prints = voices.flatMap((voice, speaker) =>
    hasEnoughSpeech(voice) ? [{ speaker: speakerLabel(speaker), voiceprint: encodeVoiceprint(voice) }] : [],
  );
  yield ',"voiceprints":[';
  yield* joined(prints, (print) => JSON.stringify(print));
  yield ']';
}

/**
 * The output of an identify job as JSON text, in chunks: that of the diarization with `identification`, a line a turn,
 * and
 * `voiceprints`, a line a diarized speaker.
 *
 * @param matches [speakers]
 * @param labels [voiceprints] the caller's names
 */
export function writeIdentification(
  diarization: Diarization,
  matches: readonly SpeakerMatch[],
  labels: readonly string[],
  flags: OutputFlags,
): AsyncGenerator<string> {
  return writeOutput(diarization, flags, members(diarization, matches, labels, flags));
}

function* members(
  { turns }: Diarization,
  matches: readonly SpeakerMatch[],
  labels: readonly string[],
  flags: OutputFlags,
): Generator<string> {
  const names = matches.map(({ match }) => (match === undefined ? null : labels[match]));
  yield ',"identification":[';
  yield* joined(turns, ({ speaker, startSeconds, endSeconds, confidence }) =>
    JSON.stringify({
      speaker: names[speaker] ?? speakerLabel(speaker),
      start: startSeconds,
      end: endSeconds,
      diarizationSpeaker: speakerLabel(speaker),
      match: names[speaker],
      ...(flags.turnLevelConfidence ? { confidence: byLabel(labels, turnConfidence(confidence, matches)) } : {}),
    }),
  );
  yield '],"voiceprints":[';
  yield* joined(matches, (match) => {
    const speaker = matches.indexOf(match);
    return JSON.stringify({
      speaker: speakerLabel(speaker),
      match: names[speaker],
      confidence: byLabel(labels, match.confidence),
    });
  });
  yield ']';
}
