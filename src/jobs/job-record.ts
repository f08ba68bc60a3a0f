import type { Checkpoint, RecordingFacts } from '../audio/recording.ts';
import type { JobSpec, JobStatus } from './app-services.ts';

/** A job as in its row: members that are large or must be deleted with the job are stored as objects. */
export type StoredSpec =
  | Extract<JobSpec, { kind: 'diarize' | 'voiceprint' }>
  | {
      readonly kind: 'identify';
      readonly request: Omit<Extract<JobSpec, { kind: 'identify' }>['request'], 'voiceprints'>;
    };

/** A job as it is stored. Times are milliseconds since the Unix epoch. */
export type JobRecord = StoredSpec & {
  readonly id: string;
  readonly accountId: string;
  readonly status: JobStatus;
  readonly webhookUrl?: string;
  readonly webhookStatusOnly: boolean;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly completedAt?: number;
  readonly shardCount?: number;
  readonly durationSeconds?: number;
  readonly outputKey?: string;
  readonly error?: { readonly code: string; readonly message: string };
};

/** Length of a recording. */
export interface IngestedLength {
  readonly shardCount: number;
  readonly durationSeconds: number;
}

/** A recording that was read completely. */
export interface IngestedRecording extends IngestedLength {
  readonly facts: RecordingFacts;
  /** At 16 kHz; per channel if channels are separate. */
  readonly totalSamples: number;
  /** Number of channels, if each was read separately; each has the same number of shards. */
  readonly separateChannels?: number;
  readonly warning?: string;
}

/** Progress of the ingest of a recording, stored as JSON next to the chunks. */
export interface IngestState {
  /**
   * Number of earlier files: a file that changes during the read is read again, and data of the earlier one is ignored.
   */
  readonly generation: number;
  /** Identity of the source (`OpenSource`). */
  readonly identity: string;
  /** Number of stored chunks, and the checkpoint from which another invocation continues after them. */
  readonly chunks: number;
  readonly checkpoint: Checkpoint;
  /** Channel that is being read, from 0, if each is read separately; `chunks` and `checkpoint` belong to it. */
  readonly channel?: number;
  /** Setting of the job, so that shards need not read the job. */
  readonly model: JobRecord['request']['model'];
  /** Set once the recording is read completely. */
  readonly recording?: IngestedRecording;
}

/** contract §4: created → pending → running → succeeded | failed | canceled; terminal states never change. */
const TERMINAL: ReadonlySet<JobStatus> = new Set(['succeeded', 'failed', 'canceled']);

export const isTerminal = (status: JobStatus): boolean => TERMINAL.has(status);
