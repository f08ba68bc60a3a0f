import type { DiarizeOutput } from '../../client/sdk/types.ts';
import { type LabelledSegment, optimalMapping, segmentsFromTurns } from './der.ts';
import { sweep } from './means.ts';

/** A confidence of the service (0..1) and whether its claim was right. */
export interface Judged {
  readonly confidence: number;
  readonly right: boolean;
}

/** Values whose confidence lies in one tenth of the scale. */
interface ReliabilityBin {
  readonly fromConfidence: number;
  readonly count: number;
  readonly meanConfidence: number;
  readonly shareRight: number;
}

export interface Agreement {
  readonly count: number;
  readonly shareRight: number;
  readonly meanConfidence: number;
  /** Pearson correlation of confidence and correctness (0 or 1); undefined if either is constant. */
  readonly correlation: number | undefined;
  /** Probability that a right value has a higher confidence than a wrong one, ties half; undefined without both. */
  readonly auc: number | undefined;
  /** Mean distance of confidence and share right over ten bins, weighted by count. */
  readonly calibrationError: number;
  readonly bins: readonly ReliabilityBin[];
}

/**
 * Judges the frames of a confidence track. A frame is right if, under the optimal mapping of speakers, exactly the
 * reference's speakers are active at its centre.
 *
 * @param confidences [frames], 0..1; frame i covers `[i, i + 1) * resolutionSeconds`
 * @param speechOnly leaves out frames where neither annotation has a speaker
 */
export function judgeFrames(
  reference: readonly LabelledSegment[],
  hypothesis: readonly LabelledSegment[],
  confidences: readonly number[],
  resolutionSeconds: number,
  speechOnly = false,
): Judged[] {
  const referenceOf = optimalMapping(reference, hypothesis);
  const mapped = hypothesis.map((segment) => {
    const target = referenceOf.get(segment.speaker);
    return { ...segment, speaker: target ?? `unmatched ${segment.speaker}` };
  });
  const labels = [...new Set([...reference, ...mapped].map((segment) => segment.speaker))];
  const right = new Uint8Array(confidences.length).fill(1);
  const speech = new Uint8Array(confidences.length);
  for (const span of sweep(reference, mapped, labels, labels)) {
    const same =
      span.reference.length === span.hypothesis.length &&
      span.reference.every((speaker, index) => speaker === span.hypothesis[index]);
    // Frame centres inside [start, end).
    const first = Math.max(0, Math.ceil(span.startMicros / 1e6 / resolutionSeconds - 0.5));
    const end = Math.min(confidences.length, Math.ceil(span.endMicros / 1e6 / resolutionSeconds - 0.5));
    for (let frame = first; frame < end; frame++) {
      speech[frame] = 1;
      if (!same) right[frame] = 0;
    }
  }
  const judged: Judged[] = [];
  for (const [frame, confidence] of confidences.entries()) {
    if (!speechOnly || speech[frame]) judged.push({ confidence, right: right[frame] === 1 });
  }
  return judged;
}

function areaUnderCurve(values: readonly Judged[]): number | undefined {
  const sorted = [...values].sort((a, b) => a.confidence - b.confidence);
  const rightCount = values.filter((value) => value.right).length;
  const wrongCount = values.length - rightCount;
  if (rightCount === 0 || wrongCount === 0) return undefined;
  let rankSum = 0;
  for (let start = 0; start < sorted.length; ) {
    let end = start;
    let rightHere = 0;
    while (end < sorted.length && sorted[end].confidence === sorted[start].confidence) {
      if (sorted[end].right) rightHere++;
      end++;
    }
    rankSum += rightHere * ((start + 1 + end) / 2);
    start = end;
  }
  return (rankSum - (rightCount * (rightCount + 1)) / 2) / (rightCount * wrongCount);
}

/** Agreement of confidences with correctness. */
export function agreement(values: readonly Judged[]): Agreement {
  const count = values.length;
  const mean = (pick: (value: Judged) => number): number =>
    count === 0 ? 0 : values.reduce((total, value) => total + pick(value), 0) / count;
  const meanConfidence = mean((value) => value.confidence);
  const shareRight = mean((value) => Number(value.right));
  const covariance = mean((value) => (value.confidence - meanConfidence) * (Number(value.right) - shareRight));
  const variance = mean((value) => (value.confidence - meanConfidence) ** 2);
  const spread = Math.sqrt(variance * shareRight * (1 - shareRight));
  const bins = Array.from({ length: 10 }, (_, index) => {
    const inBin = values.filter((value) => Math.min(9, Math.floor(value.confidence * 10 + 1e-9)) === index);
    const average = (pick: (value: Judged) => number): number =>
      inBin.length === 0 ? 0 : inBin.reduce((total, value) => total + pick(value), 0) / inBin.length;
    return {
      fromConfidence: index / 10,
      count: inBin.length,
      meanConfidence: average((value) => value.confidence),
      shareRight: average((value) => Number(value.right)),
    };
  });
  const calibrationError =
    count === 0
      ? 0
      : bins.reduce((total, bin) => total + bin.count * Math.abs(bin.meanConfidence - bin.shareRight), 0) / count;
  return {
    count,
    shareRight,
    meanConfidence,
    correlation: spread > 0 ? covariance / spread : undefined,
    auc: areaUnderCurve(values),
    calibrationError,
    bins,
  };
}

/**
 * Judges the confidence in the speaker of each turn. A turn is right if, under the optimal mapping, its speaker talks
 * for at least half of it.
 *
 * @param turns `confidence`: 0..1 for the turn's speaker
 */
export function judgeTurns(
  reference: readonly LabelledSegment[],
  turns: readonly (LabelledSegment & { readonly confidence: number })[],
): Judged[] {
  const referenceOf = optimalMapping(reference, turns);
  return turns.map((turn) => {
    const target = referenceOf.get(turn.speaker);
    const own = reference.filter((segment) => segment.speaker === target);
    let sharedMicros = 0;
    for (const { reference: there, hypothesis, startMicros, endMicros } of sweep(own, [turn])) {
      if (there.length > 0 && hypothesis.length > 0) sharedMicros += endMicros - startMicros;
    }
    return { confidence: turn.confidence, right: 2 * sharedMicros >= turn.endMicros - turn.startMicros };
  });
}

/**
 * Judges the frames and turns of an output with all optional fields; none without an output (no speech).
 */
export function judgeOutput(
  reference: readonly LabelledSegment[],
  output: DiarizeOutput | undefined,
): { readonly frames: Judged[]; readonly turns: Judged[] } {
  if (!output?.confidence) return { frames: [], turns: [] };
  const found = segmentsFromTurns(output.diarization);
  const { score, resolution } = output.confidence;
  const confidences = score.map((percent) => percent / 100);
  const own = output.diarization.map(({ speaker, confidence }) => (confidence?.[speaker] ?? Number.NaN) / 100);
  return {
    frames: judgeFrames(reference, found, confidences, resolution),
    turns: judgeTurns(
      reference,
      found.map((segment, index) => ({ ...segment, confidence: own[index] })),
    ),
  };
}
