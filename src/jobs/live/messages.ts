import type { SpeakerMessage } from '../../contract/live-messages.ts';
import { speakerLabel } from '../../diarization/index.ts';
import type { LiveEvent } from '../../live/types.ts';

/** An event of the diarization as the wire has it. */
export function speakerMessage({ kind, speaker, timestampSeconds, match }: LiveEvent): SpeakerMessage {
  const data = { timestamp: timestampSeconds, speaker: speakerLabel(speaker) };
  return {
    type: `diarization_speaker_${kind}`,
    data: kind === 'start' && match !== undefined ? { ...data, match } : data,
  };
}
