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

/** Requests that an account may send to one endpoint within a window. */
export interface RateLimits {
  /** Of requests that change something. */
  readonly post: number;
  /** Of requests that read. */
  readonly get: number;
}

export const DEFAULT_RATE_LIMITS: RateLimits = { post: 100, get: 300 };

/** A window as it is stored; `startedAt` is in milliseconds since the Unix epoch. */
export interface RateWindow {
  readonly startedAt: number;
  readonly count: number;
}

/**
 * The window after one more request. A window begins with the first request that no earlier one covers, so that no
 * burst of a client is cut in two by a boundary that it cannot see.
 */
export function countRequest(window: RateWindow | undefined, now: number): RateWindow {
  const isOpen = window && now >= window.startedAt && now < window.startedAt + RATE_WINDOW_MS;
  return isOpen ? { ...window, count: window.count + 1 } : { startedAt: now, count: 1 };
}

/** Size of the largest recording (contract §7), uploaded or fetched. */
export const RECORDING_MAX_BYTES = 1024 ** 3;

/** What a job is asked to do. */
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

/** What a verified key stands for. */
export interface Principal {
  readonly account: Account;
  readonly keyId: string;
  readonly scopes: ReadonlySet<Scope>;
  /** Where the browsers of the key's live streams may connect from; undefined for anywhere. */
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
  /** Try to read the recording, from the second one on; sent as the header `X-Job-Attempt`. */
  readonly attempt?: { readonly number: number; readonly of: number };
  /** Set on failed and canceled jobs. */
  readonly error?: { readonly code: string; readonly message: string };
}

export type CreateJob = JobSpec & {
  readonly accountId: string;
  readonly idempotency?: { readonly key: string; readonly bodyHash: string };
  /** The account cannot pay for a new job: only one that the idempotency key stands for already is given. */
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

/** What was said by one speaker, in seconds from the start of the audio. */
export interface Spoken {
  readonly start: number;
  readonly end: number;
  readonly text: string;
  /** Label of the diarization. */
  readonly speaker: string;
}

/** The transcript of a job that succeeded. Each call reads the stored output again: memory never holds a whole list. */
export interface Transcript {
  readonly durationSeconds: number;
  words(): AsyncIterable<Spoken>;
  /** What one speaker says without a long pause. */
  turns(): AsyncIterable<Spoken>;
  /** Turns cut at sentence ends and pauses, as short as subtitles. */
  segments(): AsyncIterable<Spoken>;
  /** The segments as subtitles without speakers. */
  subtitles(format: 'srt' | 'vtt'): AsyncIterable<string>;
}

/** Of an identify job's speaker: the label of the matching voice. */
export interface SpeakerMatch {
  readonly speaker: string;
  readonly match: string | null;
}

export interface JobService {
  create(input: CreateJob): Promise<Result<JobView, { kind: 'idempotency_conflict' | 'payment_required' }>>;
  /**
   * A new job from the stored analysis of a diarization; costs no credit. Undefined as for `find`.
   * @param bounds replace those of the job
   */
  recount(
    accountId: string,
    jobId: string,
    bounds: RecountRequest,
    idempotency: CreateJob['idempotency'],
  ): Promise<Result<JobView, { kind: 'idempotency_conflict' | 'payment_required' | 'no_analysis' }> | undefined>;
  /** Whether a call with this key has made a job that stands for it still. */
  hasReplay(accountId: string, idempotencyKey: string): Promise<boolean>;
  /** undefined for unknown, deleted and other accounts' jobs alike */
  find(accountId: string, jobId: string): Promise<JobView | undefined>;
  /** The stored output document (UTF-8 JSON), undefined when there is none or it is past its time to live. */
  openOutput(jobId: string): Promise<ReadableStream<Uint8Array> | undefined>;
  /** The turns of the stored output in a text format; undefined as for `openOutput`. */
  openTurns(jobId: string, format: TurnFormat): Promise<ReadableStream<Uint8Array> | undefined>;
  /** The transcript in the stored output, an error where it has none; undefined as for `openOutput`. */
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
  /** Deletes the job, stopping it where it still works; false where `find` finds nothing. */
  remove(accountId: string, jobId: string): Promise<boolean>;
  /** What becomes of the job from the event of that id on; -1 for all of it. Ends when `isOpen` says no. */
  watch(
    accountId: string,
    jobId: string,
    afterId: number,
    isOpen: () => boolean | Promise<boolean>,
  ): AsyncGenerator<JobWatchItem>;
}

export interface MediaService {
  /**
   * Signed address for one raw PUT of the named media, valid for at least an hour. `origin` is this service's own
   * origin.
   */
  createUpload(accountId: string, name: string, origin: string): Promise<{ readonly url: string }>;
  findUpload(ticket: string): Promise<Result<MediaUpload, { kind: 'bad_ticket' | 'expired_ticket' }>>;
  /** Makes a body of unknown length the recording of that name, within the service. */
  store(accountId: string, name: string, body: ReadableStream<Uint8Array>): ReturnType<MediaUpload['store']>;
  /** Ends the time to live of the named media: the next sweep removes it. */
  expire(accountId: string, name: string): Promise<void>;
  /** Signed address to read the named media from, valid for two hours; undefined when there is none. */
  createDownload(accountId: string, name: string, origin: string): Promise<{ readonly url: string } | undefined>;
  findDownload(ticket: string): Promise<Result<MediaDownload, { kind: 'bad_ticket' | 'expired_ticket' | 'not_found' }>>;
}

/** What an upload ticket stands for. */
export interface MediaUpload {
  /** Account that owns the recording and is charged for the call: the request has no key. */
  readonly accountId: string;
  readonly rateLimits: RateLimits;
  /**
   * Makes the body the recording of the ticket's name; one that is refused or breaks off leaves the recording of
   * before.
   * @param contentLength bytes, undefined where the sender did not say
   */
  store(
    body: ReadableStream<Uint8Array>,
    contentLength: number | undefined,
  ): Promise<Result<{ readonly sizeBytes: number }, { kind: 'too_large' | 'empty' | 'too_slow' | 'no_place' }>>;
}

/** A recording that a download ticket stands for. */
export interface MediaDownload {
  /** That after `media://`. */
  readonly name: string;
  readonly sizeBytes: number;
  /** As the header has it, quotes and all. */
  readonly etag: string;
  /** @throws from the stream when the recording has gone meanwhile */
  open(range: { offset: number; length: number }): ReadableStream<Uint8Array>;
}

/** A live stream as its owner may see it; times are milliseconds since the Unix epoch. */
export interface LiveView {
  readonly id: string;
  readonly status: LiveStatus;
  /** What was asked for, without voiceprints. */
  readonly input: LiveInput;
  readonly startedAt?: number;
  readonly completedAt?: number;
}

export interface LiveService {
  /** The token is good for one connection and stored nowhere. */
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
  /** The client's end of the connection; an unknown stream and an unknown, used or expired token are refused alike. */
  connect(streamId: string, upgrade: LiveUpgrade): Promise<LiveConnection>;
}

/** What a key says of itself. */
export interface KeyClaims {
  readonly accountId: string;
  readonly keyId: string;
  readonly scopes: readonly Scope[];
  /** Where the browsers of its live streams may connect from; undefined for anywhere. */
  readonly origins?: readonly string[];
}

export interface KeyService {
  /** By signature, claims and expiry alone, without the database; undefined for a bad or expired key. */
  read(token: string): Promise<KeyClaims | undefined>;
  /** By the database; undefined for a revoked, expired or unknown key. */
  find(claims: KeyClaims): Promise<Principal | undefined>;
}

/**
 * Coarse limits in front of the contract's own: they keep floods from the database and from the memory of the isolates.
 * No client that stays within the contract's limits meets them.
 */
export interface FloodLimits {
  /** Whether a client's address may send one more request. */
  allowsClient(address: string): Promise<boolean>;
  allowsKey(keyId: string): Promise<boolean>;
}

export interface QuotaService {
  /** Counts a request. Exact: no two requests get the same number. */
  count(accountId: string, endpoint: string): Promise<{ readonly count: number; readonly resetMs: number }>;
}

export interface CreditService {
  /**
   * Whether the account can pay for one more job or stream: the least that is billed, beside what those need that it
   * has begun.
   */
  suffices(accountId: string): Promise<boolean>;
}

export interface UsageService {
  /** What was billed, by UTC day and kind. */
  perDay(accountId: string, range: UsageQuery): Promise<UsageRow[]>;
}

/** All that the HTTP layer may call. Built in `src/services-api.ts`, injected by `src/app.ts`. */
export interface AppServices {
  readonly keys: KeyService;
  readonly floodLimits: FloodLimits;
  readonly jobs: JobService;
  readonly media: MediaService;
  readonly live: LiveService;
  /** What is wrong with a voiceprint, as a sentence's end; undefined for one that this service can use. */
  voiceprintFault(voiceprint: string): string | undefined;
  readonly quota: QuotaService;
  readonly usage: UsageService;
  readonly credit: CreditService;
  /** Whether a job could be stored now. */
  canTakeJobs(): Promise<boolean>;
  readonly policy: {
    /** Whether clients connect to the runtime itself, so that their handshakes come here whole. */
    readonly directConnections: boolean;
    /** Opens loopback sources and webhooks; local development only. */
    readonly allowLoopback: boolean;
    /** Models for which a transcription engine is configured. */
    readonly transcription: readonly TranscriptionModel[];
    /** Whether the models in use can follow a live stream. */
    readonly liveStreams: boolean;
  };
  /** Structured log; never gets secrets, URLs' queries or audio. */
  log(level: 'info' | 'warn' | 'error', event: string, fields?: Record<string, unknown>): void;
}
