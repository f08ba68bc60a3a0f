import type { LiveInput as AskedFor, LiveStatus } from '../../contract/live.ts';
import type { LiveSession, LiveSettings } from '../../live/types.ts';
import type { AudioFormat } from './frames.ts';

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
  /** Refused when the account has that many streams open already, or no credit left for one more; exact, however many are created at once. */
  create(
    stream: { readonly id: string; readonly accountId: string; readonly input: AskedFor; readonly now: number },
    maxOpen: number,
  ): Promise<'created' | 'too_many_streams' | 'payment_required'>;
  find(streamId: string): Promise<LiveRecord | undefined>;
  /** created → running. False for a stream in any other state. */
  start(streamId: string, now: number): Promise<boolean>;
  /** created, running → error; running → done, with the usage record and the credit: all or nothing, once. */
  end(streamId: string, outcome: LiveOutcome, now: number): Promise<boolean>;
  /**
   * Open streams that were created and never started before the one moment, or started before the other; of more than `limit` some by lot, so that
   * those that go on keep none out.
   */
  openSince(createdBefore: number, startedBefore: number, limit: number): Promise<string[]>;
}

/** What a stream's object is told when the stream is created. Voiceprints are here and nowhere else. */
export interface StreamSetup {
  readonly streamId: string;
  /** SHA-256 of the token. */
  readonly tokenDigest: Uint8Array;
  /** When the token expires. */
  readonly expiresAt: number;
  readonly format: AudioFormat;
  readonly settings: LiveSettings;
}

/** The objects that hold connections, one a stream. */
export interface LiveObjects {
  open(setup: StreamSetup): Promise<void>;
  /** Forgets a stream that was opened and not created. */
  discard(streamId: string): Promise<void>;
  /** Has a stream looked after now. False where nothing is known of it. */
  wake(streamId: string): Promise<boolean>;
  /** Burns the token and connects; undefined for a token that is unknown, used or expired. */
  connect(streamId: string, token: string): Promise<WebSocket | undefined>;
}

/** Diarization of streams, over the models of this isolate. */
export interface LiveSessions {
  create(settings: LiveSettings): Promise<LiveSession>;
  restore(snapshot: Uint8Array): Promise<LiveSession>;
}
