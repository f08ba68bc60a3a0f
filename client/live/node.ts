import { WebSocket } from 'ws';
import type { WebSocketConstructor, WebSocketLike } from './types.ts';

/** Longest message that is taken from the service. */
const MAX_PAYLOAD_BYTES = 1 << 20;

/**
 * A WebSocket for every Node: 20 has none of its own. The library's types of events are its own, hence the cast. Apart from `index.ts`, so that a browser's bundle is free of the library.
 */
export const nodeWebSocket: WebSocketConstructor = class extends WebSocket {
  constructor(url: string) {
    super(url, { maxPayload: MAX_PAYLOAD_BYTES, perMessageDeflate: false });
  }
} as unknown as new (
  url: string,
) => WebSocketLike;
