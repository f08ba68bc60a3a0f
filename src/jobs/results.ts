import type { Result } from '../audio/audio-ports.ts';
import type { DiarizeRequest } from '../contract/diarize.ts';
import type { VoiceprintOutput } from '../contract/outputs.ts';
import { assemble } from '../diarization/assemble.ts';
import {
  type Diarization,
  type FrameTracks,
  type ScoredTurn,
  type SpeakerTurn,
  type SpeakerVoice,
  writeOutput,
} from '../diarization/diarization.ts';
import { settingsOf } from '../diarization/parameters.ts';
import { openPart, partsOf } from '../diarization/part.ts';
import { joinCounts } from '../diarization/speaker-count.ts';
import { enrol } from '../voiceprint/enrol.ts';
import { logOddsOf, matchSpeakers, voiceprintsMember, writeIdentification } from '../voiceprint/identification.ts';
import { decodeVoiceprint, encodeVoiceprint } from '../voiceprint/voiceprint.ts';
import { readVoiceprints } from './create-job.ts';
import type { JobPorts, ObjectStore } from './job-ports.ts';
import type { IngestedRecording, JobRecord } from './job-record.ts';
import { tracksKey } from './work-keys.ts';

/** The output document of a job as JSON text in chunks. */
export function resultOf(assembly: Assembly): Promise<Result<OutputText, JobFault>> {
  const { job } = assembly;
  switch (job.kind) {
    case 'diarize':
      return diarization(assembly, job);
    case 'voiceprint':
      return voiceprint(assembly);
    case 'identify':
      return identification(assembly, job);
  }
}

async function diarization(
  assembly: Assembly,
  { request }: Extract<JobRecord, { kind: 'diarize' }>,
): Promise<Result<OutputText, JobFault>> {
  const diarized = await diarizeParts(assembly, { voices: request.embeddings === true });
  return diarized.ok ? { ok: true, value: writeDiarization(diarized.value, request) } : diarized;
}

/** The document of a diarize job, without a transcription. */
export function writeDiarization(diarized: Diarization, request: DiarizeRequest): AsyncGenerator<string> {
  return writeOutput(diarized, request, request.embeddings && voiceprintsMember(diarized.voices ?? []));
}

/** Why a job has no result; `message` is a sentence for the caller. */
export interface JobFault {
  readonly code: string;
  readonly message: string;
}

/** An output document as JSON text in chunks. */
export type OutputText = Iterable<string> | AsyncIterable<string>;

/** A job whose parts are complete and can be assembled. */
export interface Assembly {
  readonly ports: Pick<JobPorts, 'objects' | 'plda' | 'identification'>;
  readonly job: JobRecord;
  readonly recording: IngestedRecording;
  readPart(shard: number, offset: number, length: number): Promise<Uint8Array>;
  readonly pulse: () => Promise<void>;
}

/**
 * Diarizes the job's recording from the stored parts. Warnings about the audio precede those of the diarization.
 */
export async function diarizeParts(
  assembly: Assembly,
  options: { readonly voices: boolean },
): Promise<Result<Diarization, JobFault>> {
  const { ports, job, recording, readPart, pulse } = assembly;
  const { separateChannels } = recording;
  if (separateChannels !== undefined)
    return diarizeChannels(assembly, separateChannels, (channel) => diarizeParts(channel, options));
  const parts = await Promise.all(
    Array.from({ length: recording.shardCount }, (_, shard) =>
      openPart((offset, length) => readPart(shard, offset, length)),
    ),
  );
  const result = await assemble(
    partsOf(parts),
    { totalSamples: recording.totalSamples, durationSeconds: recording.durationSeconds },
    settingsOf(job.request.model),
    job.kind === 'voiceprint' ? {} : job.request,
    {
      pause: pulse,
      speakerTracks: job.kind === 'diarize' && job.request.speakerProbability,
      voices: options.voices,
      pldaOf: ports.plda,
      trackSpill: trackSpillOf(ports.objects, job.id),
    },
  );
  const { channels } = recording.facts;
  if (!result.ok) {
    const { kind, message, loudestDb } = result.error;
    const hint = cancellationHint(channels, loudestDb, 'nothing found');
    return { ok: false, error: { code: kind, message: hint === undefined ? message : `${message} ${hint}` } };
  }
  const { warning, loudestDb, ...diarization } = result.value;
  const hint = cancellationHint(channels, loudestDb, 'something found');
  const warnings = [recording.warning, hint, warning].filter((text) => text !== undefined);
  return { ok: true, value: { ...diarization, ...(warnings.length > 0 && { warning: warnings.join(' ') }) } };
}

/** Storage of the speakers' tracks of one run of an assembly; concurrent runs of the same job have separate keys. */
export function trackSpillOf(objects: Pick<ObjectStore, 'put' | 'getRange'>, jobId: string) {
  const run = crypto.randomUUID();
  return {
    write: (block: number, bytes: Uint8Array) => objects.put(tracksKey(jobId, run, block), bytes),
    read: (block: number, offset: number, length: number) =>
      objects.getRange(tracksKey(jobId, run, block), offset, length),
  };
}

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
  const speakerCount = joinCounts(found.map(({ diarization }) => diarization.speakerCount));
  return {
    durationSeconds,
    speakers,
    ...(speakerCount && { speakerCount }),
    turns: turns.sort(byStart),
    exclusiveTurns: exclusiveTurns.sort(byStart),
    tracks: NO_TRACKS,
    ...(voices.length > 0 && { voices }),
    ...(warnings.length > 0 && { warning: warnings.join(' ') }),
  };
}

const byStart = (a: SpeakerTurn, b: SpeakerTurn): number => a.startSeconds - b.startSeconds || a.speaker - b.speaker;

/** The output of a voiceprint job. */
export async function voiceprint(assembly: Assembly): Promise<Result<OutputText, JobFault>> {
  const { ports } = assembly;
  const diarized = await diarizeParts(assembly, { voices: true });
  if (!diarized.ok) return diarized;
  const enrolled = enrol(diarized.value, (a, b) => logOddsOf([a], [b], ports.identification(a.embeddingId)).at(0)!);
  if (!enrolled.ok) return { ok: false, error: { code: enrolled.error.kind, message: enrolled.error.message } };
  const { voice, warning } = enrolled.value;
  const warnings = [diarized.value.warning, warning].filter((text) => text !== undefined);
  const output: VoiceprintOutput = {
    voiceprint: encodeVoiceprint(voice),
    ...(warnings.length > 0 && { warning: warnings.join(' ') }),
  };
  return { ok: true, value: [JSON.stringify(output)] };
}

/** The output of an identify job. */
export async function identification(
  assembly: Assembly,
  { id, request }: Extract<JobRecord, { kind: 'identify' }>,
): Promise<Result<OutputText, JobFault>> {
  const { ports } = assembly;
  const submitted = await readVoiceprints(ports, id);
  const references = submitted.flatMap(({ voiceprint }) => {
    const decoded = decodeVoiceprint(voiceprint);
    return decoded.ok ? [decoded.value] : [];
  });
  const diarized = await diarizeParts(assembly, { voices: true });
  if (!diarized.ok) return diarized;
  const voices = diarized.value.voices ?? [];
  const embeddingId = voices[0]?.embeddingId ?? '';
  // The voiceprints were checked when the job was created; the models may have changed since.
  if (references.length < submitted.length || references.some((reference) => !isComparable(reference, voices))) {
    const message = `The voiceprints are of another embedding model than ${embeddingId}. Make them again.`;
    return { ok: false, error: { code: 'voiceprint_outdated', message } };
  }
  const logOdds = logOddsOf(voices, references, ports.identification(embeddingId));
  const matches = matchSpeakers(logOdds, voices.length, references.length, request.matching);
  const labels = submitted.map(({ label }) => label);
  return { ok: true, value: writeIdentification(diarized.value, matches, labels, request) };
}

function isComparable(reference: SpeakerVoice, voices: readonly SpeakerVoice[]): boolean {
  return voices.every(
    ({ embeddingId, embedding }) =>
      reference.embeddingId === embeddingId &&
      (embedding.length === 0 || reference.embedding.length === embedding.length),
  );
}

/**
 * Level below which the mean of several channels is suspicious, dB of full scale. Vorbis artefacts of two channels that
 * cancel each other out reach −36. The limit is lower if turns were found, because quiet recordings with speech exist.
 */
const QUIET_DB = { 'nothing found': -35, 'something found': -70 } as const;

/**
 * Hint that a recording may have lost its sound when its channels were mixed: channels of opposite phase cancel out.
 *
 * @param loudestDb level of the loudest tenth of a second of the mean, dB of full scale
 * @returns one or two sentences; undefined if the level is not suspicious
 */
export function cancellationHint(
  channels: number,
  loudestDb: number,
  outcome: keyof typeof QUIET_DB,
): string | undefined {
  if (channels < 2 || loudestDb >= QUIET_DB[outcome]) return undefined;
  return (
    `The mean of its ${channels} channels is very quiet: channels of opposite phase cancel each other out. ` +
    'If they contain speech, send a single channel.'
  );
}
