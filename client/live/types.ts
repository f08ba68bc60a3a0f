import type { SpeakerChange } from './turns.ts';

/** A speaker begins or ends a turn, or the service has trouble with what it got. Times are seconds from the start of the stream. */
export type LiveEvent =
  | {
      readonly kind: 'start';
      readonly speaker: string;
      readonly timestampSeconds: number;
      /** Where voiceprints were sent: whose voice it is, null for nobody's or not known yet. */
      readonly match?: string | null;
    }
  | { readonly kind: 'end'; readonly speaker: string; readonly timestampSeconds: number }
  /** Where corrections were asked for: what was told turns out to be others'. All changes apply at once. */
  | { readonly kind: 'correction'; readonly changes: readonly SpeakerChange<string>[] }
  /** The stream goes on, unless its end follows. */
  | { readonly kind: 'error'; readonly message: string };

/** How a stream ended. `message` is one sentence. */
export type LiveClose =
  /** After `end()`: everything has been told. */
  | { readonly kind: 'done' }
  /** The service ended the stream by itself, properly: it had reached the longest length. */
  | { readonly kind: 'length_limit'; readonly message: string }
  /** 1008: audio too fast for the service, none for too long, or events that were not read. */
  | { readonly kind: 'policy'; readonly message: string }
  /** 1009: a frame was too large. */
  | { readonly kind: 'too_large'; readonly message: string }
  /** 1011: trouble in the service. */
  | { readonly kind: 'service_failed'; readonly message: string }
  /** The caller gave up: `abort()`. */
  | { readonly kind: 'aborted' }
  /** The connection broke, or ended with a code that the service does not use. */
  | { readonly kind: 'lost'; readonly code: number; readonly message: string };

/** What is needed of a WebSocket: the browser's own, Node's from 22 on, and the library `ws` have it. */
export interface WebSocketLike {
  binaryType: string;
  readonly bufferedAmount: number;
  send(data: string | Uint8Array<ArrayBuffer>): void;
  close(code?: number, reason?: string): void;
  /** Drops the connection at once; where it is missing, `close` has to do. */
  terminate?(): void;
  addEventListener(type: 'open', listener: () => void): void;
  addEventListener(type: 'error', listener: (event: { readonly message?: string }) => void): void;
  addEventListener(type: 'message', listener: (event: { readonly data: unknown }) => void): void;
  addEventListener(type: 'close', listener: (event: { readonly code: number; readonly reason: string }) => void): void;
}

export type WebSocketConstructor = new (url: string) => WebSocketLike;
