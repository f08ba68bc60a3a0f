import type { Result } from '../../audio/audio-ports.ts';
import type { Diarization, FrameTracks, ScoredTurn, SpeakerTurn } from '../../diarization/diarization.ts';
import type { Assembly, JobFault } from './diarized.ts';

const NO_TRACKS: FrameTracks = {
  resolutionSeconds: 0.02,
  confidence: new Uint8Array(0),
  speech: new Uint8Array(0),
  crosstalk: new Uint8Array(0),
  speakers: [],
};

/**
 * Diarizes channel by channel. The parts of the recording are sorted by channel. Speakers are numbered across channels.
 * Frame-wise tracks are left out.
 *
 * @param channels number of channels
 * @param diarize diarizes one channel
 */
export async function diarizeChannels(
  assembly: Assembly,
  channels: number,
  diarize: (channel: Assembly) => Promise<Result<Diarization, JobFault>>,
): Promise<Result<Diarization, JobFault>> {
  const { recording } = assembly;
  const shardCount = recording.shardCount / channels;
  const found: { readonly channel: number; readonly diarization: Omit<Diarization, 'tracks'> }[] = [];
  const warnings = recording.warning === undefined ? [] : [recording.warning];
  if (channels === 1) warnings.push('The recording has one channel.');
  let silent: Result<never, JobFault> | undefined;
  for (let channel = 0; channel < channels; channel++) {
    const result = await diarize({
      ...assembly,
      recording: {
        ...recording,
        shardCount,
        facts: { ...recording.facts, channels: 1 },
        separateChannels: undefined,
        warning: undefined,
      },
      readPart: (shard, offset, length) => assembly.readPart(channel * shardCount + shard, offset, length),
    });
    if (result.ok) {
      const { tracks, warning, ...diarization } = result.value;
      found.push({ channel, diarization });
      if (warning !== undefined) warnings.push(`Channel ${channel}: ${warning}`);
    } else if (result.error.code === 'no_speech') silent = result;
    else return result;
  }
  if (found.length === 0 && silent) return silent;
  return { ok: true, value: joined(found, recording.durationSeconds, warnings) };
}

function joined(
  found: readonly { readonly channel: number; readonly diarization: Omit<Diarization, 'tracks'> }[],
  durationSeconds: number,
  warnings: readonly string[],
): Diarization {
  const speakers = found.reduce((sum, { diarization }) => sum + diarization.speakers, 0);
  const turns: ScoredTurn[] = [];
  const exclusiveTurns: SpeakerTurn[] = [];
  let first = 0;
  for (const { channel, diarization } of found) {
    const placed = <T extends SpeakerTurn>(turn: T): T => ({ ...turn, speaker: first + turn.speaker, channel });
    for (const turn of diarization.turns) {
      const confidence = new Array<number>(speakers).fill(0);
      for (const [speaker, value] of turn.confidence.entries()) confidence[first + speaker] = value;
      turns.push({ ...placed(turn), confidence });
    }
    for (const turn of diarization.exclusiveTurns) exclusiveTurns.push(placed(turn));
    first += diarization.speakers;
  }
  const voices = found.flatMap(({ diarization }) => diarization.voices ?? []);
  return {
    durationSeconds,
    speakers,
    turns: turns.sort(byStart),
    exclusiveTurns: exclusiveTurns.sort(byStart),
    tracks: NO_TRACKS,
    ...(voices.length > 0 && { voices }),
    ...(warnings.length > 0 && { warning: warnings.join(' ') }),
  };
}

const byStart = (a: SpeakerTurn, b: SpeakerTurn): number => a.startSeconds - b.startSeconds || a.speaker - b.speaker;
