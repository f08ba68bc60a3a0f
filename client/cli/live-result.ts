import { collectTurns, type SpeakerChange } from '../live/turns.ts';
import type { LiveEvent } from '../live/types.ts';
import type { DiarizeOutput, IdentifyOutput } from '../sdk/types.ts';

/** Formats an event for the terminal. */
export function describeEvent(event: LiveEvent): string {
  if (event.kind === 'error') return `warning: ${event.message}`;
  if (event.kind === 'correction') return event.changes.map(describeChange).join('\n');
  const { kind, speaker, timestampSeconds } = event;
  const name = kind === 'start' && typeof event.match === 'string' ? ` (${event.match})` : '';
  return `${timestampSeconds.toFixed(3)}  ${speaker} ${kind}s${name}`;
}

function describeChange({ startSeconds, endSeconds, from, to }: SpeakerChange<string>): string {
  return `${startSeconds.toFixed(3)}  ${from} becomes ${to} until ${endSeconds.toFixed(3)}`;
}

/**
 * Converts the turns of a stream to the output of a job.
 *
 * @param withNames whether voiceprints were sent; then all turns of a speaker have the speaker's last match
 * @param untilSeconds end of the turns that are still open
 */
export function outputOf(
  events: readonly LiveEvent[],
  withNames: boolean,
  untilSeconds: number,
): DiarizeOutput & Partial<Pick<IdentifyOutput, 'identification'>> {
  const diarization = collectTurns<string>(events, untilSeconds);
  if (!withNames) return { diarization };
  const names = new Map<string, string>();
  for (const event of events) if (event.kind === 'start' && event.match) names.set(event.speaker, event.match);
  const identification = diarization.map(({ speaker, start, end }) => {
    const match = names.get(speaker) ?? null;
    return { speaker: match ?? speaker, start, end, diarizationSpeaker: speaker, match };
  });
  return { diarization, identification };
}
