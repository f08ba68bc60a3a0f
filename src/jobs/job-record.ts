import type { Checkpoint, RecordingFacts } from '../audio/recording.ts';
import type { JobSpec, JobStatus } from './app-services.ts';

/** A job as its row keeps it: what is large or must not outlive the job is an object of its own. */
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

/** How long a recording is. */
export interface IngestedLength {
  readonly shardCount: number;
  readonly durationSeconds: number;
}

/** A recording that was read as a whole. */
export interface IngestedRecording extends IngestedLength {
  readonly facts: RecordingFacts;
  /** At 16 kHz; per channel if channels are separate. */
  readonly totalSamples: number;
  /** Number of channels, if each was read separately; each has the same number of shards. */
  readonly separateChannels?: number;
  readonly warning?: string;
}

/** How far the reading of a recording has come; stored as JSON beside the chunks. */
export interface IngestState {
  /**
   * Counts the files that were read: one that changes under way is read again, and nothing of the one before is used.
   */
  readonly generation: number;
  /** Of the source (`OpenSource`). */
  readonly identity: string;
  /** Chunks that are stored, and where another invocation continues after them. */
  readonly chunks: number;
  readonly checkpoint: Checkpoint;
  /** Channel that is being read, from 0, if each is read separately; `chunks` and `checkpoint` belong to it. */
  readonly channel?: number;
  /** Of the job: shards need nothing else of it. */
  readonly model: JobRecord['request']['model'];
  /** Once it has been read as a whole. */
  readonly recording?: IngestedRecording;
}

/** contract §4: created → pending → running → succeeded | failed | canceled; terminal states never change. */
const TERMINAL: ReadonlySet<JobStatus> = new Set(['succeeded', 'failed', 'canceled']);

export const isTerminal = (status: JobStatus): boolean => TERMINAL.has(status);
