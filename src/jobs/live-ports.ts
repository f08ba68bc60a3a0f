import type { Result } from '../audio/audio-ports.ts';
import type { LiveInput, LiveStatus } from '../contract/live.ts';
import type { LiveSession, LiveSettings } from '../live/live-session.ts';
import type { AudioFormat } from './live-frames.ts';

/** A live stream as it is stored. Times are milliseconds since the Unix epoch. */
export interface LiveRecord {
  readonly id: string;
  readonly accountId: string;
  readonly status: LiveStatus;
  /** The request, without voiceprints. */
  readonly input: LiveInput;
  readonly startedAt?: number;
  readonly completedAt?: number;
}

/** How a stream ends. */
export interface LiveOutcome {
  readonly status: 'done' | 'error';
  readonly receivedSeconds: number;
}

/** Rows of live streams. Every method is one transaction and may be repeated. */
export interface LiveStore {
  /**
   * Refused if the account has `maxOpen` open streams, or no credit left for one more. Exact, also for concurrent
   * calls.
   */
  create(
    stream: { readonly id: string; readonly accountId: string; readonly input: LiveInput; readonly now: number },
    maxOpen: number,
  ): Promise<'created' | 'too_many_streams' | 'payment_required'>;
  find(streamId: string): Promise<LiveRecord | undefined>;
  /**
   * Records the credit that a running stream has used so far.
   * @returns false if the account's credit is used up by all its streams and jobs
   */
  spend(streamId: string, receivedSeconds: number): Promise<boolean>;
  /** created → running. False for a stream in any other state. */
  start(streamId: string, now: number): Promise<boolean>;
  /** created, running → error; running → done, with the usage record and the credit. One transaction, once a stream. */
  end(streamId: string, outcome: LiveOutcome, now: number): Promise<boolean>;
  /**
   * Open streams that were created before `createdBefore` and never started, or started before `startedBefore`. If
   * there are more than `limit`, a random choice, so that running streams do not keep the others out.
   */
  openSince(createdBefore: number, startedBefore: number, limit: number): Promise<string[]>;
}

/** Data that a stream's object gets when the stream is created. Voiceprints are stored only there. */
export interface StreamSetup {
  readonly streamId: string;
  /** SHA-256 of the token. */
  readonly tokenDigest: Uint8Array;
  /** When the token expires, milliseconds since the Unix epoch. */
  readonly expiresAt: number;
  readonly format: AudioFormat;
  readonly settings: LiveSettings;
  /** Whether a connection that was lost may be resumed. */
  readonly isResumable: boolean;
  /** Origins from which browsers may connect; undefined for any. */
  readonly origins?: readonly string[];
}

/** `connect` permits the first connection of a stream, `resume` the next one after a lost connection. */
export type StreamTokenKind = 'connect' | 'resume';

/** Signed tokens that name their stream. */
export interface StreamTokens {
  /** @param expiresAt milliseconds since the Unix epoch */
  sign(kind: StreamTokenKind, streamId: string, expiresAt: number): Promise<string>;
  /** Checks signature, kind, stream and expiry; not whether the token was used. */
  verify(kind: StreamTokenKind, token: string, streamId: string, now: number): Promise<boolean>;
}

/** A client's upgrade request. */
export interface LiveUpgrade {
  readonly kind: StreamTokenKind;
  readonly token: string;
  /** The `Origin` header, which browsers send. */
  readonly origin?: string;
}

export type LiveConnection = Result<
  WebSocket,
  { kind: 'bad_stream_token' } | { kind: 'origin_not_allowed' } | { kind: 'overloaded' }
>;

/** Durable Objects that hold connections, one per stream. */
export interface LiveObjects {
  /** False if the isolate is overloaded: its running streams lag. */
  open(setup: StreamSetup): Promise<boolean>;
  /** Forgets a stream that was opened and not created. */
  discard(streamId: string): Promise<void>;
  /** Runs the overdue work of a stream's alarm now. False if the object knows no stream. */
  wake(streamId: string): Promise<boolean>;
  /** Burns the token and connects. */
  connect(streamId: string, upgrade: LiveUpgrade): Promise<LiveConnection>;
}

/** Diarization of streams, over the models of this isolate. */
export interface LiveSessions {
  create(settings: LiveSettings): Promise<LiveSession>;
  restore(snapshot: Uint8Array): Promise<LiveSession>;
}

/** Maximum number of open streams of an account; a stream is open from its creation until it ends (contract §7). */
export const MAX_OPEN_STREAMS = 10;
/** Maximum audio in the queue when most of it is ahead of real time. */
export const MAX_BACKLOG_MS = 5000;
/** The same if the service is slow or a client resumes: a minute, and the repeated frames. */
export const MAX_LATE_BACKLOG_MS = 75_000;
/** Maximum audio in the queues of all streams of an isolate, which has 128 MB of memory. */
export const MAX_WAITING_BYTES = 32 * 1024 * 1024;
/** Audio between two snapshots from which a stream can be resumed. */
export const RESUME_EVERY_MS = 10_000;
/** A larger frame ends the stream. */
export const MAX_FRAME_BYTES = 1024 * 1024;
/**
 * Maximum text sent over one stream. The platform does not report how much a client has read, so this bounds what the
 * service holds for a client that reads nothing. Five hours of two speakers who constantly interrupt each other, with
 * labels of a hundred characters, need 5.6 MB.
 */
export const MAX_SENT_BYTES = 8 * 1024 * 1024;
/** Maximum text of corrections among `MAX_SENT_BYTES`; a stream that exceeds it continues without corrections. */
export const MAX_CORRECTION_BYTES = 1024 * 1024;
/**
 * Sent text up to which each fault of a client is reported. Above it, a repeated fault is reported once per
 * `FRAMES_PER_FAULT` frames: a report for each frame of five hours would exceed `MAX_SENT_BYTES`.
 */
export const MAX_BYTES_OF_EVERY_FAULT = 1024 * 1024;
export const FRAMES_PER_FAULT = 10;

/** Durations that a deployment may shorten. */
export interface LiveTimes {
  /** From the creation of a stream until its token expires. */
  readonly tokenMs: number;
  /** Time without a frame after which a stream is closed. */
  readonly idleMs: number;
  /** Maximum audio of a stream. */
  readonly maxMs: number;
  /** From the loss of a connection until a resumable stream ends. */
  readonly resumeMs: number;
  /** Audio between two checks of the account's credit. */
  readonly creditMs: number;
  /**
   * Maximum time from the first connection of a stream to its end, so that rare frames cannot keep it open for months.
   */
  readonly connectedMs: number;
}
