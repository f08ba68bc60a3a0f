import type { DiarizeOutput } from '../client/sdk/types.ts';
import { type Judged, judgeFrames, judgeTurns } from './score/agreement.ts';
import { type LabelledSegment, segmentsFromTurns } from './score/rttm.ts';

/** The confidences of an answer with all its fields, frame by frame and turn by turn; none where there is no answer, for lack of speech. */
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
