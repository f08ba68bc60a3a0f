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

/** Map from the cosine similarity of two voices to log-odds; fitted by `training/identification/fit.py`. */
export interface IdentificationParameters {
  /** Log-odds per unit of cosine, and those of a cosine of 0, for voices of unlimited speech. */
  readonly slope: number;
  readonly offset: number;
  /** Seconds of speech at which half of the variance of an embedding is due to the words that were said. */
  readonly noiseSeconds: number;
}

/** For embedders without fitted values: a cosine similarity of 0.45 has a probability of 50 %. */
export const DEFAULT_IDENTIFICATION: IdentificationParameters = { slope: 16, offset: -7.2, noiseSeconds: 0 };

/** Voices of less speech count as this long: those of people who never talk alone have no seconds. */
const MIN_RELIABLE_SECONDS = 0.5;
/** Log-odds are clamped to this: beyond those of any two voices, and their probabilities are still finite. */
const MAX_LOG_ODDS = 700;

/**
 * Log-odds that two voices are the same person's, if both answers are equally likely beforehand: the logarithm of the
 * likelihood ratio. An empty embedding gets the lowest log-odds.
 *
 * Short speech lowers the similarity to the same person and says less about others. Where the cosine of the same person
 * is normally distributed around `reliability · μ` and that of another around 0, with equal variance σ², the log-odds
 * are `reliability · μ/σ² · cosine − reliability² · μ²/2σ²`.
 *
 * @param probes voices of the same embedder as `references`; embeddings of unit length
 * @returns [probes, references]
 */
export function logOddsOf(
  probes: readonly SpeakerVoice[],
  references: readonly SpeakerVoice[],
  { slope, offset, noiseSeconds }: IdentificationParameters,
): Float64Array {
  return Float64Array.from({ length: probes.length * references.length }, (_, index) => {
    const a = probes[Math.floor(index / references.length)];
    const b = references[index % references.length];
    if (a.embedding.length === 0 || b.embedding.length === 0) return -MAX_LOG_ODDS;
    const cosine = a.embedding.reduce((sum, value, d) => sum + value * b.embedding[d], 0);
    const reliability = Math.sqrt(shareOfVoice(a, noiseSeconds) * shareOfVoice(b, noiseSeconds));
    return Math.min(MAX_LOG_ODDS, Math.max(-MAX_LOG_ODDS, reliability * (slope * cosine + offset * reliability)));
  });
}

/** Share of the variance of an embedding that is due to the voice, and not to the words of a short piece of speech. */
function shareOfVoice({ secondsAlone }: SpeakerVoice, noiseSeconds: number): number {
  const seconds = Math.max(MIN_RELIABLE_SECONDS, secondsAlone);
  return seconds / (seconds + noiseSeconds);
}

/** Log-odds → probability. */
export const probabilityOf = (logOdds: number): number => 1 / (1 + Math.exp(-logOdds));

export interface MatchingOptions {
  /** Minimum confidence of a match, 0…100. */
  readonly threshold: number;
  /** Whether a voiceprint may match at most one speaker. */
  readonly exclusive: boolean;
}

interface SpeakerMatch {
  /** Index of the matching voiceprint, undefined for none. */
  readonly match: number | undefined;
  /** [voiceprints] 0…100 */
  readonly confidence: readonly number[];
}

/** Score of the worst possible match; 0 is no match. */
const MIN_SCORE = 1e-3;
/** Above these log-odds a match is practically certain: higher ones must not outweigh other matches. */
const CERTAIN_LOG_ODDS = 12;
/** Slope beyond `CERTAIN_LOG_ODDS`, so that they still order pairs that are all certain. */
const SATURATED_SLOPE = 1e-6;

/**
 * Matches speakers with voiceprints. With `exclusive`: the one-to-one assignment of the highest joint likelihood among
 * the pairs whose confidence reaches the threshold. Otherwise each speaker's best voiceprint.
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
  // Compares the rounded confidence, as the caller sees it: 50 reaches a threshold of 50.
  const reaches = confidence.map((value) => value >= threshold);
  // With a low threshold an unlikely match is better than none, so that scores are shifted above 0. Likely matches keep
  // their log-odds: otherwise several could score less than one.
  const bounded = logOdds.map(saturated);
  const lowest = bounded.reduce((least, value, index) => (reaches[index] ? Math.min(least, value) : least), 0);
  const scores = bounded.map((value, index) => (reaches[index] ? value - lowest + MIN_SCORE : 0));
  const chosen = exclusive ? assignOptimally(scores, speakers, voiceprints) : best(scores, speakers, voiceprints);
  return Array.from({ length: speakers }, (_, speaker) => {
    const column = chosen[speaker];
    const isMatch = column >= 0 && reaches[speaker * voiceprints + column];
    return {
      match: isMatch ? column : undefined,
      confidence: confidence.slice(speaker * voiceprints, (speaker + 1) * voiceprints),
    };
  });
}

/** Log-odds with a very small slope beyond `CERTAIN_LOG_ODDS`. */
function saturated(logOdds: number): number {
  const bounded = Math.min(CERTAIN_LOG_ODDS, Math.max(-CERTAIN_LOG_ODDS, logOdds));
  return bounded + SATURATED_SLOPE * (logOdds - bounded);
}

function best(scores: Float64Array, rows: number, columns: number): Int32Array {
  return Int32Array.from({ length: rows }, (_, row) => {
    const own = scores.subarray(row * columns, (row + 1) * columns);
    return own.indexOf(Math.max(...own));
  });
}

/**
 * Confidence, 0…100, that each submitted voice talks in a turn: that any of the diarized speakers matches it and talks.
 *
 * @param turn [speakers] confidence, 0…100, that each diarized speaker talks in the turn
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
 * The output of an identify job as JSON text, in chunks: the diarization output with `identification`, one item per
 * turn, and `voiceprints`, one item per diarized speaker.
 *
 * @param matches [speakers]
 * @param labels [voiceprints] the caller's labels
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
