import type { CorrectionMessage, SpeakerMessage } from '../../contract/live-messages.ts';
import { speakerLabel } from '../../diarization/diarization.ts';
import type { CorrectionEvent, TurnEvent } from '../../live/live-session.ts';

/** A start or an end as the wire has it. */
export function speakerMessage({ kind, speaker, timestampSeconds, match }: TurnEvent): SpeakerMessage {
  const data = { timestamp: timestampSeconds, speaker: speakerLabel(speaker) };
  return {
    type: `diarization_speaker_${kind}`,
    data: kind === 'start' && match !== undefined ? { ...data, match } : data,
  };
}

/** A correction as the wire has it. */
export function correctionMessage({ changes }: CorrectionEvent): CorrectionMessage {
  const told = changes.map(({ startSeconds, endSeconds, from, to }) => ({
    start: startSeconds,
    end: endSeconds,
    from: speakerLabel(from),
    to: speakerLabel(to),
  }));
  return { type: 'diarization_speaker_correction', data: { changes: told } };
}
