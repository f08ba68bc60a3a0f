import { assignOptimally } from '../../src/diarization/numerics.ts';
import type { LabelledSegment } from './rttm.ts';
import { labelsOf, sweep } from './sweep.ts';

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
export interface DiarizationErrorRate {
  readonly der: number;
  readonly miss: number;
  readonly falseAlarm: number;
  readonly confusion: number;
}

/**
 * Diarization error of one recording, with no collar and overlap scored, under the mapping of speakers that
 * makes it smallest (NIST md-eval's definition, pyannote.metrics' `DiarizationErrorRate(collar=0, skip_overlap=False)`).
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
