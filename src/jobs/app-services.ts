import type { Result } from '../audio/audio-ports.ts';
import type { UsageQuery, UsageRow } from '../contract/account.ts';
import type { DiarizeRequest, RecountRequest } from '../contract/diarize.ts';
import type { IdentifyRequest, VoiceprintRequest } from '../contract/identify.ts';
import type { TranscriptionModel } from '../contract/languages.ts';
import type { LiveInput, LiveRequest, LiveStatus } from '../contract/live.ts';
import type { TurnFormat } from '../formats/turn-text.ts';
import type { LiveConnection, LiveUpgrade } from './live-ports.ts';

/** Length of the window in which an account's requests to one endpoint are counted (contract §7). */
export const RATE_WINDOW_MS = 60_000;

/** Maximum number of requests of an account to one endpoint within a window. */
export interface RateLimits {
  /** For requests that change something. */
  readonly post: number;
  /** For requests that read. */
  readonly get: number;
}

export const DEFAULT_RATE_LIMITS: RateLimits = { post: 100, get: 300 };

/** A window as it is stored; `startedAt` is in milliseconds since the Unix epoch. */
export interface RateWindow {
  readonly startedAt: number;
  readonly count: number;
}

/**
 * The window after one more request. A window begins with the first request outside the previous one, so that no
 * boundary that the client cannot see splits a burst.
 */
export function countRequest(window: RateWindow | undefined, now: number): RateWindow {
  const isOpen = window && now >= window.startedAt && now < window.startedAt + RATE_WINDOW_MS;
  return isOpen ? { ...window, count: window.count + 1 } : { startedAt: now, count: 1 };
}

/** Size of the largest recording (contract §7), uploaded or fetched. */
export const RECORDING_MAX_BYTES = 1024 ** 3;

/** Kind and request of a job. */
export type JobSpec =
  | { readonly kind: 'diarize'; readonly request: DiarizeRequest }
  | { readonly kind: 'voiceprint'; readonly request: VoiceprintRequest }
  | { readonly kind: 'identify'; readonly request: IdentifyRequest };
export type JobKind = JobSpec['kind'];
export type JobStatus = 'created' | 'pending' | 'running' | 'succeeded' | 'failed' | 'canceled';

export const SCOPES = ['jobs:read', 'jobs:write', 'media:read', 'media:write', 'stream:read', 'stream:write'] as const;
export type Scope = (typeof SCOPES)[number];

export interface Account {
  readonly id: string;
  readonly name: string;
  readonly subscribed: boolean;
  readonly creditSeconds: number;
  readonly rateLimits: RateLimits;
}

/** Account and rights of a verified key. */
export interface Principal {
  readonly account: Account;
  readonly keyId: string;
  readonly scopes: ReadonlySet<Scope>;
  /** Origins from which browsers may connect to the key's live streams; undefined for any. */
  readonly origins?: readonly string[];
}

/** A job as its owner may see it; times are milliseconds since the Unix epoch. */
export interface JobView {
  readonly id: string;
  readonly kind: JobKind;
  readonly status: JobStatus;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly metadata?: Record<string, string>;
  /** 0…1 while the job runs; sent as the header `X-Job-Progress`. */
  readonly progress?: number;
  /** Attempt to read the recording, set from the second one on; sent as the header `X-Job-Attempt`. */
  readonly attempt?: { readonly number: number; readonly of: number };
  /** Set on failed and canceled jobs. */
  readonly error?: { readonly code: string; readonly message: string };
}

export type CreateJob = JobSpec & {
  readonly accountId: string;
  readonly idempotency?: { readonly key: string; readonly bodyHash: string };
  /** Only return the job of the idempotency key: the account cannot pay for a new one. */
  readonly isReplayOnly?: boolean;
};

export interface JobPage {
  readonly items: readonly { readonly id: string; readonly status: JobStatus; readonly createdAt: number }[];
  /** Where the next page begins; undefined on the last one. */
  readonly nextCursor?: string;
}

/** Events that a watcher of a job gets. Ids rise; `heartbeat` only shows that the connection lives. */
export type JobWatchItem =
  | { readonly kind: 'status'; readonly id: number; readonly job: JobView }
  | { readonly kind: 'progress'; readonly id: number; readonly jobId: string; readonly progress: number }
  | { readonly kind: 'heartbeat' };

/** Text of one speaker; times are seconds from the start of the audio. */
export interface Spoken {
  readonly start: number;
  readonly end: number;
  readonly text: string;
  /** Label of the diarization. */
  readonly speaker: string;
}

/** Transcript of a succeeded job. Each call reads the stored output again, so that memory never holds a whole list. */
export interface Transcript {
  readonly durationSeconds: number;
  words(): AsyncIterable<Spoken>;
  /** Text of one speaker without a long pause. */
  turns(): AsyncIterable<Spoken>;
  /** Turns cut at sentence ends and pauses, as short as subtitles. */
  segments(): AsyncIterable<Spoken>;
  /** The segments as subtitles without speakers. */
  subtitles(format: 'srt' | 'vtt'): AsyncIterable<string>;
}

/** A speaker of an identify job, and the label of the matching voiceprint. */
export interface SpeakerMatch {
  readonly speaker: string;
  readonly match: string | null;
}

export interface JobService {
  create(input: CreateJob): Promise<Result<JobView, { kind: 'idempotency_conflict' | 'payment_required' }>>;
  /**
   * Creates a job from the stored analysis of a diarization; costs no credit. Undefined as for `find`.
   * @param bounds bounds of the speaker count, which replace those of the job
   */
  recount(
    accountId: string,
    jobId: string,
    bounds: RecountRequest,
    idempotency: CreateJob['idempotency'],
  ): Promise<Result<JobView, { kind: 'idempotency_conflict' | 'payment_required' | 'no_analysis' }> | undefined>;
  /** Whether a call with this idempotency key would return an existing job. */
  hasReplay(accountId: string, idempotencyKey: string): Promise<boolean>;
  /** undefined for unknown, deleted and other accounts' jobs alike */
  find(accountId: string, jobId: string): Promise<JobView | undefined>;
  /** The stored output document (UTF-8 JSON); undefined if there is none or it has expired. */
  openOutput(jobId: string): Promise<ReadableStream<Uint8Array> | undefined>;
  /** The turns of the stored output in a text format; undefined as for `openOutput`. */
  openTurns(jobId: string, format: TurnFormat): Promise<ReadableStream<Uint8Array> | undefined>;
  /** The transcript in the stored output, or an error if it has none; undefined as for `openOutput`. */
  openTranscript(jobId: string): Promise<Result<Transcript, { readonly warning?: string }> | undefined>;
  /** The matches in an identify job's output; undefined as for `openOutput`. */
  findMatches(jobId: string): Promise<readonly SpeakerMatch[] | undefined>;
  /** The account's jobs, newest first. */
  list(
    accountId: string,
    query: { readonly limit: number; readonly status?: JobStatus; readonly cursor?: string },
  ): Promise<Result<JobPage, { kind: 'bad_cursor' }>>;
  /** Ends the job as `canceled` unless it has ended; undefined as for `find`. */
  cancel(accountId: string, jobId: string): Promise<JobView | undefined>;
  /** Deletes the job, and stops it if it is unfinished; false if `find` returns undefined. */
  remove(accountId: string, jobId: string): Promise<boolean>;
  /** Events of the job after that id; -1 for all events. Ends when `isOpen` returns false. */
  watch(
    accountId: string,
    jobId: string,
    afterId: number,
    isOpen: () => boolean | Promise<boolean>,
  ): AsyncGenerator<JobWatchItem>;
}

export interface MediaService {
  /**
   * Signed address for one raw PUT of the named media, valid for at least an hour.
   * @param origin origin of this service
   */
  createUpload(accountId: string, name: string, origin: string): Promise<{ readonly url: string }>;
  findUpload(ticket: string): Promise<Result<MediaUpload, { kind: 'bad_ticket' | 'expired_ticket' }>>;
  /** Stores a body of unknown length under that name, for calls within the service. */
  store(accountId: string, name: string, body: ReadableStream<Uint8Array>): ReturnType<MediaUpload['store']>;
  /** Ends the time to live of the named media: the next sweep removes it. */
  expire(accountId: string, name: string): Promise<void>;
  /** Signed address to read the named media from, valid for two hours; undefined when there is none. */
  createDownload(accountId: string, name: string, origin: string): Promise<{ readonly url: string } | undefined>;
  findDownload(ticket: string): Promise<Result<MediaDownload, { kind: 'bad_ticket' | 'expired_ticket' | 'not_found' }>>;
}

/** The upload that a ticket permits. */
export interface MediaUpload {
  /** Account that owns the recording and is charged for the call: the request has no key. */
  readonly accountId: string;
  readonly rateLimits: RateLimits;
  /**
   * Stores the body under the ticket's name. The stored recording is unchanged if the body is refused or breaks off.
   * @param contentLength bytes, undefined if the sender did not send it
   */
  store(
    body: ReadableStream<Uint8Array>,
    contentLength: number | undefined,
  ): Promise<Result<{ readonly sizeBytes: number }, { kind: 'too_large' | 'empty' | 'too_slow' | 'no_place' }>>;
}

/** The recording that a download ticket permits to read. */
export interface MediaDownload {
  /** Name after `media://`. */
  readonly name: string;
  readonly sizeBytes: number;
  /** Value of the header, with its quotes. */
  readonly etag: string;
  /** @throws from the stream if the recording was deleted meanwhile */
  open(range: { offset: number; length: number }): ReadableStream<Uint8Array>;
}

/** A live stream as its owner may see it; times are milliseconds since the Unix epoch. */
export interface LiveView {
  readonly id: string;
  readonly status: LiveStatus;
  /** The request, without voiceprints. */
  readonly input: LiveInput;
  readonly startedAt?: number;
  readonly completedAt?: number;
}

export interface LiveService {
  /** The token permits one connection and is not stored. */
  create(
    accountId: string,
    request: LiveRequest,
    origins?: readonly string[],
  ): Promise<
    Result<
      { readonly id: string; readonly token: string },
      { kind: 'too_many_streams'; maxStreams: number } | { kind: 'payment_required' } | { kind: 'overloaded' }
    >
  >;
  /** undefined for unknown and other accounts' streams alike */
  find(accountId: string, streamId: string): Promise<LiveView | undefined>;
  /** The client's end of the connection. Unknown streams and unknown, used or expired tokens get the same error. */
  connect(streamId: string, upgrade: LiveUpgrade): Promise<LiveConnection>;
}

/** Signed content of a key. */
export interface KeyClaims {
  readonly accountId: string;
  readonly keyId: string;
  readonly scopes: readonly Scope[];
  /** Origins from which browsers may connect to its live streams; undefined for any. */
  readonly origins?: readonly string[];
}

export interface KeyService {
  /** Checks signature, claims and expiry, without the database; undefined for a bad or expired key. */
  read(token: string): Promise<KeyClaims | undefined>;
  /** Reads the database; undefined for a revoked, expired or unknown key. */
  find(claims: KeyClaims): Promise<Principal | undefined>;
}

/**
 * Coarse limits, checked before those of the contract: they keep floods from the database and from the memory of the
 * isolates. They are higher than the contract's limits.
 */
export interface FloodLimits {
  /** Whether a client's IP address may send one more request. */
  allowsClient(address: string): Promise<boolean>;
  allowsKey(keyId: string): Promise<boolean>;
}

export interface QuotaService {
  /** Counts a request. Exact: no two requests get the same number. */
  count(accountId: string, endpoint: string): Promise<{ readonly count: number; readonly resetMs: number }>;
}

export interface CreditService {
  /**
   * Whether the account can pay the minimum charge of one more job or stream, beside what its unfinished jobs and
   * streams need.
   */
  suffices(accountId: string): Promise<boolean>;
}

export interface UsageService {
  /** Billed usage by UTC day and kind. */
  perDay(accountId: string, range: UsageQuery): Promise<UsageRow[]>;
}

/** Everything that the HTTP layer may call. Built in `src/services-api.ts`, injected by `src/app.ts`. */
export interface AppServices {
  readonly keys: KeyService;
  readonly floodLimits: FloodLimits;
  readonly jobs: JobService;
  readonly media: MediaService;
  readonly live: LiveService;
  /** Fault of a voiceprint, as the end of a sentence; undefined if this service can use it. */
  voiceprintFault(voiceprint: string): string | undefined;
  readonly quota: QuotaService;
  readonly usage: UsageService;
  readonly credit: CreditService;
  /** Whether the service can store a job now. */
  canTakeJobs(): Promise<boolean>;
  readonly policy: {
    /** Whether clients connect to the runtime without a proxy, so that their handshakes arrive unchanged. */
    readonly directConnections: boolean;
    /** Opens loopback sources and webhooks; local development only. */
    readonly allowLoopback: boolean;
    /** Models for which a transcription engine is configured. */
    readonly transcription: readonly TranscriptionModel[];
    /** Whether the models in use can follow a live stream. */
    readonly liveStreams: boolean;
  };
  /** Structured log; never pass secrets, queries of URLs or audio. */
  log(level: 'info' | 'warn' | 'error', event: string, fields?: Record<string, unknown>): void;
}
