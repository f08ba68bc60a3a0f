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
 * Text sent over one stream. The platform tells nobody how much of it a client has read, so all of it counts as unread: this
 * is what a client that never reads can make the service hold. Five hours in which two people interrupt each other all the time, both named in a hundred characters, have 5.6 MB.
 */
export const MAX_SENT_BYTES = 8 * 1024 * 1024;
/** Of these, what corrections may have; beyond, a stream goes on without any. */
export const MAX_CORRECTION_BYTES = 1024 * 1024;
/**
 * Text up to which each fault of a client is told. Beyond, one that repeats while audio comes is told once in so many frames: with
 * each frame of five hours, it would have a client that reads taken for one that does not.
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
  /** From the connection of a stream to its end: a frame now and then would keep one of the account's places for months. */
  readonly connectedMs: number;
}
