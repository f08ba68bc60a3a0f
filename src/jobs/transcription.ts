import type { Diarization } from '../diarization/diarization.ts';
import type { SpeakerTurns } from '../transcription/spans.ts';
import { dispatch } from './dispatch.ts';
import { documentKey, transcriptionKey } from './keys.ts';
import { JobGone } from './lease.ts';
import type { JobPorts, JobRecord } from './ports.ts';
import { writeDiarization } from './results/index.ts';

/** A diarize job. Use `isTranscribed` to check whether it asks for a transcription. */
export type TranscribedJob = Extract<JobRecord, { kind: 'diarize' }>;

/** State of a transcription, stored as JSON. */
export interface Transcription {
  readonly turns: SpeakerTurns;
  /** Warning of the diarization. */
  readonly warning?: string;
  /** Number of leading pieces that are done; later pieces may be done as well. */
  readonly pieces: number;
  /** Consecutive failures of the engine. */
  readonly failures: number;
}

export const isTranscribed = (job: JobRecord): job is TranscribedJob =>
  job.kind === 'diarize' && job.request.transcription === true;

/** A request has its settings whenever it asks for a transcription. */
export function transcriptionSettings({ request }: TranscribedJob) {
  if (!request.transcriptionConfig) throw new Error('a request for a transcription without its settings');
  return request.transcriptionConfig;
}

/** Stores the diarization and queues the transcription. Idempotent. */
export async function beginTranscription(
  ports: JobPorts,
  job: TranscribedJob,
  tag: string,
  { warning, ...diarization }: Diarization,
): Promise<void> {
  await ports.objects.putStream(documentKey(job.id, tag), writeDiarization(diarization, job.request));
  const { durationSeconds, turns, exclusiveTurns } = diarization;
  const spans = (all: Diarization['exclusiveTurns']) =>
    all.map(({ speaker, startSeconds, endSeconds }) => ({ speaker, startSeconds, endSeconds }));
  const known = { durationSeconds, turns: spans(turns), exclusiveTurns: spans(exclusiveTurns) };
  await save(ports, job.id, tag, { turns: known, warning, pieces: 0, failures: 0 });
  if (await ports.store.nextStep(job.id, ['assemble'], 'transcribe', ports.now())) {
    await dispatch(ports, { step: 'transcribe', jobId: job.id });
  }
}

export const save = (ports: JobPorts, jobId: string, tag: string, state: Transcription): Promise<void> =>
  ports.objects.put(transcriptionKey(jobId, tag), new TextEncoder().encode(JSON.stringify(state)));

/** @throws JobGone if the object is missing: the job has ended and its working data was removed */
export async function readJson<T>(ports: JobPorts, jobId: string, key: string): Promise<T> {
  const bytes = await ports.objects.get(key);
  if (!bytes) throw new JobGone(jobId);
  return JSON.parse(new TextDecoder().decode(bytes)) as T;
}

export const read = (ports: JobPorts, jobId: string, tag: string): Promise<Transcription> =>
  readJson(ports, jobId, transcriptionKey(jobId, tag));
