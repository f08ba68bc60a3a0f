import { assignOptimally } from '../../src/diarization/numerics.ts';
import { labelsOf, sweep } from './means.ts';

/** One stretch of one speaker, in whole microseconds, so that sums over a file are exact. */
export interface LabelledSegment {
  readonly speaker: string;
  readonly startMicros: number;
  readonly endMicros: number;
}

const MICROS_PER_SECOND = 1_000_000;

/** Seconds to whole microseconds, rounded to the nearest. */
export function toMicros(seconds: number): number {
  return Math.round(seconds * MICROS_PER_SECOND);
}

/** Turns of a result (seconds) as segments. Empty ones are left out. */
export function segmentsFromTurns(
  turns: Iterable<{ readonly speaker: string | number; readonly start: number; readonly end: number }>,
): LabelledSegment[] {
  const segments: LabelledSegment[] = [];
  for (const turn of turns) {
    const startMicros = toMicros(turn.start);
    const endMicros = toMicros(turn.end);
    if (endMicros > startMicros) segments.push({ speaker: String(turn.speaker), startMicros, endMicros });
  }
  return segments;
}

/**
 * Reads NIST RTTM text. Only SPEAKER lines count; `;;` starts a comment; segments without a length are left out.
 *
 * @returns segments by file id, in the order of the lines
 * @throws Error naming the line that is not RTTM
 */
export function parseRttm(text: string): Map<string, LabelledSegment[]> {
  const files = new Map<string, LabelledSegment[]>();
  for (const [index, rawLine] of text.split(/\r?\n/).entries()) {
    const line = rawLine.trim();
    if (line === '' || line.startsWith(';;')) continue;
    const fields = line.split(/\s+/);
    if (fields[0] !== 'SPEAKER') continue;
    const fileId = fields[1];
    const startSeconds = Number(fields[3]);
    const durationSeconds = Number(fields[4]);
    const speaker = fields[7];
    if (fileId === undefined || speaker === undefined) throw new Error(`RTTM line ${index + 1} is too short: ${line}`);
    if (!Number.isFinite(startSeconds) || !Number.isFinite(durationSeconds) || durationSeconds < 0) {
      throw new Error(`RTTM line ${index + 1} has no usable times: ${line}`);
    }
    const segments = files.get(fileId) ?? [];
    files.set(fileId, segments);
    const startMicros = toMicros(startSeconds);
    const endMicros = toMicros(startSeconds + durationSeconds);
    if (endMicros > startMicros) segments.push({ speaker, startMicros, endMicros });
  }
  return files;
}

/**
 * The segments of an RTTM text that describes one recording.
 *
 * @throws Error when the text describes more than one file
 */
export function parseSingleFileRttm(text: string): LabelledSegment[] {
  const files = parseRttm(text);
  if (files.size > 1) throw new Error(`expected one file in the RTTM, found ${[...files.keys()].join(', ')}`);
  return [...files.values()][0] ?? [];
}

/** Parts of a diarization error in seconds of speaker time. */
export interface DiarizationError {
  /** Reference speaker time; overlap counts once per speaker. */
  readonly totalSeconds: number;
  readonly missSeconds: number;
  readonly falseAlarmSeconds: number;
  readonly confusionSeconds: number;
  readonly referenceSpeakers: number;
  readonly hypothesisSpeakers: number;
}

/** The same in per cent of the reference speaker time. */
interface DiarizationErrorRate {
  readonly der: number;
  readonly miss: number;
  readonly falseAlarm: number;
  readonly confusion: number;
}

/**
 * Diarization error of one recording, with no collar and overlap scored, under the mapping of speakers that makes it
 * smallest (NIST md-eval's definition, pyannote.metrics' `DiarizationErrorRate(collar=0, skip_overlap=False)`).
 * Measured on the exact intervals, not on frames.
 */
export function diarizationError(
  reference: readonly LabelledSegment[],
  hypothesis: readonly LabelledSegment[],
): DiarizationError {
  const referenceLabels = labelsOf(reference);
  const hypothesisLabels = labelsOf(hypothesis);
  const columns = hypothesisLabels.length;
  const together = new Float64Array(referenceLabels.length * columns);
  let totalMicros = 0;
  let missMicros = 0;
  let falseAlarmMicros = 0;
  let matchableMicros = 0;
  for (const stretch of sweep(reference, hypothesis, referenceLabels, hypothesisLabels)) {
    const micros = stretch.endMicros - stretch.startMicros;
    const speaking = stretch.reference.length;
    const found = stretch.hypothesis.length;
    totalMicros += micros * speaking;
    missMicros += micros * Math.max(0, speaking - found);
    falseAlarmMicros += micros * Math.max(0, found - speaking);
    matchableMicros += micros * Math.min(speaking, found);
    for (const r of stretch.reference) for (const h of stretch.hypothesis) together[r * columns + h] += micros;
  }
  let correctMicros = 0;
  for (const [r, h] of assignOptimally(together, referenceLabels.length, columns).entries()) {
    if (h >= 0) correctMicros += together[r * columns + h];
  }
  return {
    totalSeconds: totalMicros / 1e6,
    missSeconds: missMicros / 1e6,
    falseAlarmSeconds: falseAlarmMicros / 1e6,
    confusionSeconds: (matchableMicros - correctMicros) / 1e6,
    referenceSpeakers: referenceLabels.length,
    hypothesisSpeakers: hypothesisLabels.length,
  };
}

/** For every hypothesis label the reference label that the optimal mapping gives it, or undefined. */
export function optimalMapping(
  reference: readonly LabelledSegment[],
  hypothesis: readonly LabelledSegment[],
): Map<string, string> {
  const referenceLabels = labelsOf(reference);
  const hypothesisLabels = labelsOf(hypothesis);
  const columns = hypothesisLabels.length;
  const together = new Float64Array(referenceLabels.length * columns);
  for (const stretch of sweep(reference, hypothesis, referenceLabels, hypothesisLabels)) {
    const micros = stretch.endMicros - stretch.startMicros;
    for (const r of stretch.reference) for (const h of stretch.hypothesis) together[r * columns + h] += micros;
  }
  const mapping = new Map<string, string>();
  for (const [r, h] of assignOptimally(together, referenceLabels.length, columns).entries()) {
    if (h >= 0 && together[r * columns + h] > 0) mapping.set(hypothesisLabels[h], referenceLabels[r]);
  }
  return mapping;
}

/** Adds up errors of several recordings: long recordings weigh more, as is usual for a pooled DER. */
export function pool(errors: readonly DiarizationError[]): DiarizationError {
  const sum = (pick: (error: DiarizationError) => number): number =>
    errors.reduce((total, error) => total + pick(error), 0);
  return {
    totalSeconds: sum((error) => error.totalSeconds),
    missSeconds: sum((error) => error.missSeconds),
    falseAlarmSeconds: sum((error) => error.falseAlarmSeconds),
    confusionSeconds: sum((error) => error.confusionSeconds),
    referenceSpeakers: sum((error) => error.referenceSpeakers),
    hypothesisSpeakers: sum((error) => error.hypothesisSpeakers),
  };
}

/** Per cent of the reference; a reference without speech gives 0 when nothing was found, else infinity. */
export function rate(error: DiarizationError): DiarizationErrorRate {
  const percent = (seconds: number): number => {
    if (error.totalSeconds > 0) return (100 * seconds) / error.totalSeconds;
    return seconds === 0 ? 0 : Number.POSITIVE_INFINITY;
  };
  return {
    der: percent(error.missSeconds + error.falseAlarmSeconds + error.confusionSeconds),
    miss: percent(error.missSeconds),
    falseAlarm: percent(error.falseAlarmSeconds),
    confusion: percent(error.confusionSeconds),
  };
}
