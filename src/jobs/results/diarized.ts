import type { Result } from '../../audio/audio-ports.ts';
import { assemble } from '../../diarization/assemble.ts';
import type { Diarization } from '../../diarization/diarization.ts';
import { settingsOf } from '../../diarization/parameters.ts';
import { openPart, partsOf } from '../../diarization/part.ts';
import { tracksKey } from '../keys.ts';
import type { IngestedRecording, JobPorts, JobRecord, ObjectStore } from '../ports.ts';
import { diarizeChannels } from './channels.ts';
import { lostInTheMix } from './lost-in-the-mix.ts';

/** Why a job has no result, in a sentence for the caller. */
export interface JobFault {
  readonly code: string;
  readonly message: string;
}

/** An output document as JSON text in chunks. */
export type OutputText = Iterable<string> | AsyncIterable<string>;

/** A job whose parts are all there, about to be assembled. */
export interface Assembly {
  readonly ports: JobPorts;
  readonly job: JobRecord;
  readonly recording: IngestedRecording;
  readPart(shard: number, offset: number, length: number): Promise<Uint8Array>;
  readonly pulse: () => Promise<void>;
}

/**
 * Who spoke when in the job's recording, from the stored parts. Warnings of the audio come before those of the
 * diarization.
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
    const hint = lostInTheMix(channels, loudestDb, 'nothing found');
    return { ok: false, error: { code: kind, message: hint === undefined ? message : `${message} ${hint}` } };
  }
  const { warning, loudestDb, ...diarization } = result.value;
  const hint = lostInTheMix(channels, loudestDb, 'something found');
  const warnings = [recording.warning, hint, warning].filter((text) => text !== undefined);
  return { ok: true, value: { ...diarization, ...(warnings.length > 0 && { warning: warnings.join(' ') }) } };
}

/** Where one run of an assembly puts its speakers' tracks down: another run of the same job has its own. */
export function trackSpillOf(objects: Pick<ObjectStore, 'put' | 'getRange'>, jobId: string) {
  const run = crypto.randomUUID();
  return {
    write: (block: number, bytes: Uint8Array) => objects.put(tracksKey(jobId, run, block), bytes),
    read: (block: number, offset: number, length: number) =>
      objects.getRange(tracksKey(jobId, run, block), offset, length),
  };
}
