import type { Usage } from '../../src/contract/account.ts';
import type { JobCreated, JobList, JobResult } from '../../src/contract/jobs.ts';
import type {
  DiarizeOutput,
  ErrorOutput,
  IdentifyOutput,
  SpeakerCount,
  Turn,
  VoiceprintOutput,
} from '../../src/contract/outputs.ts';

export type {
  DiarizeOutput,
  ErrorOutput,
  IdentifyOutput,
  JobCreated,
  JobList,
  JobResult,
  SpeakerCount,
  Turn,
  Usage,
  VoiceprintOutput,
};
/** State of a job, with `progress` (0…1) while it runs, and with `attempt` while its recording is read again. */
export type JobState = JobResult & {
  readonly progress?: number;
  readonly attempt?: { readonly number: number; readonly of: number };
};
export type JobStatus = JobResult['status'];

/** Body of POST /v1/diarize; docs/api.md describes the fields. */
export interface DiarizeOptions {
  readonly url: string;
  readonly webhook?: string;
  readonly webhookStatusOnly?: boolean;
  readonly model?: 'precision-2' | 'community-1';
  readonly numSpeakers?: number;
  readonly minSpeakers?: number;
  readonly maxSpeakers?: number;
  readonly turnLevelConfidence?: boolean;
  readonly exclusive?: boolean;
  readonly confidence?: boolean;
  readonly speechProbability?: boolean;
  readonly crosstalkProbability?: boolean;
  readonly speakerProbability?: boolean;
  readonly transcription?: boolean;
  /** Only used together with `transcription`. */
  readonly transcriptionConfig?: { readonly model?: string; readonly language?: string };
  readonly metadata?: Record<string, string>;
}

/** Body of POST /v1/voiceprint. */
export type VoiceprintOptions = Pick<DiarizeOptions, 'url' | 'webhook' | 'webhookStatusOnly' | 'model' | 'metadata'>;

/** Body of POST /v1/identify. */
export interface IdentifyOptions extends VoiceprintOptions, SpeakerOptions {
  readonly voiceprints: readonly { readonly label: string; readonly voiceprint: string }[];
  readonly matching?: { readonly threshold?: number; readonly exclusive?: boolean };
}

/** Options that diarize and identify jobs share. */
export type SpeakerOptions = Pick<
  DiarizeOptions,
  'numSpeakers' | 'minSpeakers' | 'maxSpeakers' | 'turnLevelConfidence' | 'exclusive' | 'confidence'
>;

/** Body of POST /v1/live; all optional. */
export interface LiveOptions {
  /** Known people; start events name the matched one. */
  readonly voiceprints?: readonly { readonly label: string; readonly voiceprint: string }[];
  readonly maxSpeakers?: number;
  /** Target delay between a moment and its event, milliseconds. */
  readonly latency?: number;
  /** Whether events correct turns that were sent with the wrong speaker. */
  readonly corrections?: boolean;
  /** Whether another connection may resume the stream within a minute after the loss of the first. */
  readonly resume?: boolean;
  /** Sample rate of the audio, Hz: 8000, 16000, 24000, 44100 or 48000. */
  readonly sampleRate?: number;
}

/** A stream that waits for its connection. The address can be used once, within ten minutes. */
export interface LiveCreated {
  readonly id: string;
  readonly url: string;
}

export interface LiveState {
  readonly id: string;
  readonly status: 'created' | 'running' | 'done' | 'error';
  readonly startedAt: string | null;
  readonly completedAt: string | null;
  readonly input: Readonly<Record<string, unknown>>;
}

/** Why a call failed. `message` is one sentence. */
export type ClientError =
  /** No answer: the connection was refused, the name is unknown, the connection broke or took too long. */
  | {
      readonly kind: 'unreachable';
      readonly message: string;
      /** The connection broke after it was open: the service may have received the call. */
      readonly broken?: boolean;
      /** The upload went to another host than the service's. */
      readonly elsewhere?: boolean;
    }
  /** The service answered with an error; `fields` are the invalid fields of a 400. */
  | {
      readonly kind: 'refused';
      readonly status: number;
      readonly message: string;
      readonly requestId?: string;
      /** With 429, and with 503 under load. */
      readonly retryAfterSeconds?: number;
      readonly fields?: readonly { readonly field: string; readonly message: string }[];
    }
  /** Another program answered. */
  | { readonly kind: 'unexpected'; readonly status: number; readonly message: string };

export type Outcome<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: ClientError };
