import { assignOptimally } from '../../src/diarization/numerics.ts';
import { labelsOf, sweep } from './means.ts';

/** Speech of one speaker, in whole microseconds, so that sums over a file are exact. */
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

/** Turns of a result (seconds) as segments, without empty ones. */
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
 * Parses NIST RTTM text: only SPEAKER lines, without `;;` comments and segments of length 0.
 *
 * @returns segments by file id, in the order of the lines
 * @throws Error naming a malformed line
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
 * @throws Error if the text describes more than one file
 */
export function parseSingleFileRttm(text: string): LabelledSegment[] {
  const files = parseRttm(text);
  if (files.size > 1) throw new Error(`expected one file in the RTTM, found ${[...files.keys()].join(', ')}`);
  return [...files.values()][0] ?? [];
}

/** Components of a diarization error in seconds of speaker time. */
export interface DiarizationError {
  /** Reference speaker time; overlap counts once per speaker. */
  readonly totalSeconds: number;
  readonly missSeconds: number;
  readonly falseAlarmSeconds: number;
  readonly confusionSeconds: number;
  readonly referenceSpeakers: number;
  readonly hypothesisSpeakers: number;
}

/** A diarization error in per cent of the reference speaker time. */
interface DiarizationErrorRate {
  readonly der: number;
  readonly miss: number;
  readonly falseAlarm: number;
  readonly confusion: number;
}

/**
 * Diarization error of one recording without collar, overlap scored, under the optimal mapping of speakers (NIST
 * md-eval's definition, pyannote.metrics' `DiarizationErrorRate(collar=0, skip_overlap=False)`). Computed on exact
 * intervals, not on frames.
 */
export function diarizationError(
  reference: readonly LabelledSegment[],
  hypothesis: readonly LabelledSegment[],
): DiarizationError {
  const referenceLabels = labelsOf(reference);
  const hypothesisLabels = labelsOf(hypothesis);
  const columns = hypothesisLabels.length;
  const sharedMicros = new Float64Array(referenceLabels.length * columns);
  let totalMicros = 0;
  let missMicros = 0;
  let falseAlarmMicros = 0;
  let matchableMicros = 0;
  for (const span of sweep(reference, hypothesis, referenceLabels, hypothesisLabels)) {
    const micros = span.endMicros - span.startMicros;
    const speaking = span.reference.length;
    const found = span.hypothesis.length;
    totalMicros += micros * speaking;
    missMicros += micros * Math.max(0, speaking - found);
    falseAlarmMicros += micros * Math.max(0, found - speaking);
    matchableMicros += micros * Math.min(speaking, found);
    for (const r of span.reference) for (const h of span.hypothesis) sharedMicros[r * columns + h] += micros;
  }
  let correctMicros = 0;
  for (const [r, h] of assignOptimally(sharedMicros, referenceLabels.length, columns).entries()) {
    if (h >= 0) correctMicros += sharedMicros[r * columns + h];
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

/** Reference labels by hypothesis label, under the optimal mapping; unmatched labels are absent. */
export function optimalMapping(
  reference: readonly LabelledSegment[],
  hypothesis: readonly LabelledSegment[],
): Map<string, string> {
  const referenceLabels = labelsOf(reference);
  const hypothesisLabels = labelsOf(hypothesis);
  const columns = hypothesisLabels.length;
  const sharedMicros = new Float64Array(referenceLabels.length * columns);
  for (const span of sweep(reference, hypothesis, referenceLabels, hypothesisLabels)) {
    const micros = span.endMicros - span.startMicros;
    for (const r of span.reference) for (const h of span.hypothesis) sharedMicros[r * columns + h] += micros;
  }
  const mapping = new Map<string, string>();
  for (const [r, h] of assignOptimally(sharedMicros, referenceLabels.length, columns).entries()) {
    if (h >= 0 && sharedMicros[r * columns + h] > 0) mapping.set(hypothesisLabels[h], referenceLabels[r]);
  }
  return mapping;
}

/** Sums errors of several recordings: long recordings weigh more, as usual for a pooled DER. */
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

/** Per cent of the reference's speech. Without any, the rate is 0 for an error of 0 and infinite otherwise. */
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
