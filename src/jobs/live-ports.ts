import type { Result } from '../audio/audio-ports.ts';
import type { LiveInput as AskedFor, LiveStatus } from '../contract/live.ts';
import type { LiveSession, LiveSettings } from '../live/live-session.ts';
import type { AudioFormat } from './live-frames.ts';

/** A live stream as it is stored. Times are milliseconds since the Unix epoch. */
export interface LiveRecord {
  readonly id: string;
  readonly accountId: string;
  readonly status: LiveStatus;
  /** What was asked for, without voiceprints. */
  readonly input: AskedFor;
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
   * Refused when the account has that many streams open already, or no credit left for one more; exact, however many
   * are created at once.
   */
  create(
    stream: { readonly id: string; readonly accountId: string; readonly input: AskedFor; readonly now: number },
    maxOpen: number,
  ): Promise<'created' | 'too_many_streams' | 'payment_required'>;
  find(streamId: string): Promise<LiveRecord | undefined>;
  /**
   * Notes what a running stream has used of the credit so far.
   * @returns false when the account's credit is used up, all its streams and jobs counted
   */
  spend(streamId: string, receivedSeconds: number): Promise<boolean>;
  /** created → running. False for a stream in any other state. */
  start(streamId: string, now: number): Promise<boolean>;
  /** created, running → error; running → done, with the usage record and the credit: all or nothing, once. */
  end(streamId: string, outcome: LiveOutcome, now: number): Promise<boolean>;
  /**
   * Open streams that were created and never started before the one moment, or started before the other; of more than
   * `limit` some by lot, so that those that go on keep none out.
   */
  openSince(createdBefore: number, startedBefore: number, limit: number): Promise<string[]>;
}

/** What a stream's object gets when the stream is created. Voiceprints are here and nowhere else. */
export interface StreamSetup {
  readonly streamId: string;
  /** SHA-256 of the token. */
  readonly tokenDigest: Uint8Array;
  /** When the token expires. */
  readonly expiresAt: number;
  readonly format: AudioFormat;
  readonly settings: LiveSettings;
  /** Whether a connection that was lost may be resumed. */
  readonly isResumable: boolean;
  /** Where browsers may connect from; undefined for anywhere. */
  readonly origins?: readonly string[];
}

/** `connect` is good for the first connection of a stream, `resume` for the one after a drop. */
export type StreamTokenKind = 'connect' | 'resume';

/** Signed tokens that name their stream. */
export interface StreamTokens {
  /** @param expiresAt milliseconds since the Unix epoch */
  sign(kind: StreamTokenKind, streamId: string, expiresAt: number): Promise<string>;
  /** Whether a token is of ours, of that kind and that stream, and has not expired; not whether it was used. */
  verify(kind: StreamTokenKind, token: string, streamId: string, now: number): Promise<boolean>;
}

/** An upgrade of a client. */
export interface LiveUpgrade {
  readonly kind: StreamTokenKind;
  readonly token: string;
  /** The header that browsers send. */
  readonly origin?: string;
}

export type LiveConnection = Result<
  WebSocket,
  { kind: 'bad_stream_token' } | { kind: 'origin_not_allowed' } | { kind: 'overloaded' }
>;

/** The objects that hold connections, one a stream. */
export interface LiveObjects {
  /** False where the streams that run already are behind. */
  open(setup: StreamSetup): Promise<boolean>;
  /** Forgets a stream that was opened and not created. */
  discard(streamId: string): Promise<void>;
  /** Has a stream looked after now. False where nothing is known of it. */
  wake(streamId: string): Promise<boolean>;
  /** Burns the token and connects. */
  connect(streamId: string, upgrade: LiveUpgrade): Promise<LiveConnection>;
}

/** Diarization of streams, over the models of this isolate. */
export interface LiveSessions {
  create(settings: LiveSettings): Promise<LiveSession>;
  restore(snapshot: Uint8Array): Promise<LiveSession>;
}

/** Streams of an account that may be open at once; a stream counts from its creation until it ends (contract §7). */
export const MAX_OPEN_STREAMS = 10;
/** Maximum audio in the queue when most of it is ahead of real time. */
export const MAX_BACKLOG_MS = 5000;
/** The same when the service is slow or a client catches up after a drop: a minute, and the repeated frames. */
export const MAX_LATE_BACKLOG_MS = 75_000;
/** What may wait in all streams of an isolate: it has 128 MB for everything. */
export const MAX_WAITING_BYTES = 32 * 1024 * 1024;
/** Audio between two places from which a stream can be resumed. */
export const RESUME_EVERY_MS = 10_000;
/** A larger frame ends the stream. */
export const MAX_FRAME_BYTES = 1024 * 1024;
/**
 * Text sent over one stream. The platform does not report how much of it a client has read, so all of it counts as
 * unread: this is what a client that never reads can make the service hold. Five hours in which two people interrupt
 * each other all the time, both named in a hundred characters, have 5.6 MB.
 */
export const MAX_SENT_BYTES = 8 * 1024 * 1024;
/** Of these, what corrections may have; beyond, a stream goes on without any. */
export const MAX_CORRECTION_BYTES = 1024 * 1024;
/**
 * Text up to which each fault of a client is reported. Beyond, one that repeats during audio is reported once in some
 * frames: with each frame of five hours, it would have a client that reads taken for one that does not.
 */
export const MAX_BYTES_OF_EVERY_FAULT = 1024 * 1024;
export const FRAMES_PER_FAULT = 10;

/** Times that a deployment may shorten. */
export interface LiveTimes {
  /** From the creation of a stream until its token is worth nothing. */
  readonly tokenMs: number;
  /** Without a frame, before a stream is closed. */
  readonly idleMs: number;
  /** Audio in a stream. */
  readonly maxMs: number;
  /** From the loss of a connection until a stream that can be resumed ends. */
  readonly resumeMs: number;
  /** Audio between two looks at the account's credit. */
  readonly creditMs: number;
  /**
   * From the connection of a stream to its end: a frame now and then would keep one of the account's places for months.
   */
  readonly connectedMs: number;
}
