import type { DiarizeOutput } from '../client/sdk/types.ts';
import { SAMPLE_RATE_HZ } from '../src/audio/audio-ports.ts';
import type { Assignment } from '../src/diarization/clustering/cluster.ts';
import { type DiarizationSettings, withTuning } from '../src/diarization/parameters.ts';
import type { PartReader, ShardPart } from '../src/diarization/part.ts';
import { reconstruct } from '../src/diarization/reconstruct.ts';
import { buildPowerset, decodeHard } from '../src/diarization/segmenter.ts';
import { toOutput } from './pipeline.ts';
import type { LabelledSegment } from './score/der.ts';
import { labelsOf } from './score/means.ts';

/**
 * Output of the pipeline with perfect clustering: each local speaker of a window becomes the reference speaker with
 * whom it shares most time in that window. A local speaker who shares no time becomes an extra speaker, which keeps
 * false alarms.
 */
export async function finishWithOracle(
  part: PartReader,
  totalSamples: number,
  settings: DiarizationSettings,
  reference: readonly LabelledSegment[],
): Promise<DiarizeOutput> {
  const whole = await part.readPart();
  const { facts, speakers } = whole;
  const labels = labelsOf(reference);
  const clusters = labels.length + 1;
  const clusterOf = assignToReference(whole, reference, labels);
  const posterior = new Float32Array(speakers.count * clusters);
  for (const [row, cluster] of clusterOf.entries()) posterior[row * clusters + cluster] = 1;
  const assignment: Assignment = { clusterOf, posterior };
  const tuned = facts.tuned.reduce(withTuning, settings);
  const boost = new Float32Array(clusters).fill(1);
  const { diarization } = await reconstruct(async (take) => take({ frames: whole, speakers, assignment }), {
    facts,
    settings: tuned,
    clusters,
    boost,
    totalSamples,
    durationSeconds: totalSamples / SAMPLE_RATE_HZ,
    speakerTracks: true,
  });
  return toOutput(diarization);
}

/** @returns [local speakers] index of the reference speaker, or the number of reference speakers if none fits */
function assignToReference(
  { facts, speakers, firstWindow, probabilities }: ShardPart,
  reference: readonly LabelledSegment[],
  labels: readonly string[],
): Int32Array {
  const powerset = buildPowerset(facts.maxLocalSpeakers, facts.maxSimultaneous);
  const perWindow = facts.framesPerWindow * facts.classes;
  const clusterOf = new Int32Array(speakers.count);
  for (let row = 0; row < speakers.count; row++) {
    const window = speakers.windows[row];
    const at = (window - firstWindow) * perWindow;
    const active = decodeHard(probabilities.subarray(at, at + perWindow), powerset);
    const sharedFrames = new Array<number>(labels.length).fill(0);
    for (let frame = 0; frame < facts.framesPerWindow; frame++) {
      if (!active[frame * powerset.speakers + speakers.locals[row]]) continue;
      const centreSample = window * facts.stepSamples + frame * facts.frameShiftSamples + facts.frameSizeSamples / 2;
      const micros = (1e6 * centreSample) / SAMPLE_RATE_HZ;
      for (const [index, label] of labels.entries()) {
        const talks = ({ speaker, startMicros, endMicros }: LabelledSegment): boolean =>
          speaker === label && startMicros <= micros && micros < endMicros;
        if (reference.some(talks)) sharedFrames[index]++;
      }
    }
    const most = Math.max(0, ...sharedFrames);
    clusterOf[row] = most > 0 ? sharedFrames.indexOf(most) : labels.length;
  }
  return clusterOf;
}
