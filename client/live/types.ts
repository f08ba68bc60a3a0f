import type { SpeakerChange } from './turns.ts';

/** Times are seconds from the start of the stream. */
export type LiveEvent =
  | {
      readonly kind: 'start';
      readonly speaker: string;
      readonly timestampSeconds: number;
      /** With voiceprints: label of the matched one, null for none so far. */
      readonly match?: string | null;
    }
  | { readonly kind: 'end'; readonly speaker: string; readonly timestampSeconds: number }
  /** Changes of the speakers of earlier turns, if `corrections` was set. All of them apply at once. */
  | { readonly kind: 'correction'; readonly changes: readonly SpeakerChange<string>[] }
  /** An invalid message, or an error that the service reports. The stream continues, unless its end follows. */
  | { readonly kind: 'error'; readonly message: string };

/** How a stream ended. `message` is one sentence. */
export type LiveClose =
  /** After `end()`; all events were received. */
  | { readonly kind: 'done' }
  /** The service ended the stream at its longest length. */
  | { readonly kind: 'length_limit'; readonly message: string }
  /** 1008: audio too fast for the service, no audio for too long, or unread events. */
  | { readonly kind: 'policy'; readonly message: string }
  /** 1009: a frame was too large. */
  | { readonly kind: 'too_large'; readonly message: string }
  /** 1011: a fault of the service. */
  | { readonly kind: 'service_failed'; readonly message: string }
  /** The caller called `abort()`. */
  | { readonly kind: 'aborted' }
  /** The connection broke, or ended with an unknown code. */
  | { readonly kind: 'lost'; readonly code: number; readonly message: string };

/** The part of a WebSocket that is used; those of browsers, of Node from 22 on, and of the library `ws` have it. */
export interface WebSocketLike {
  binaryType: string;
  readonly bufferedAmount: number;
  send(data: string | Uint8Array<ArrayBuffer>): void;
  close(code?: number, reason?: string): void;
  /** Drops the connection at once; `close` is used if this is missing. */
  terminate?(): void;
  addEventListener(type: 'open', listener: () => void): void;
  addEventListener(type: 'error', listener: (event: { readonly message?: string }) => void): void;
  addEventListener(type: 'message', listener: (event: { readonly data: unknown }) => void): void;
  addEventListener(type: 'close', listener: (event: { readonly code: number; readonly reason: string }) => void): void;
}

export type WebSocketConstructor = new (url: string) => WebSocketLike;
