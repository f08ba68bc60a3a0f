import { WebSocket } from 'ws';
import type { WebSocketConstructor, WebSocketLike } from './types.ts';

const MAX_PAYLOAD_BYTES = 1 << 20;

/**
 * A WebSocket for Node 20, which has none. The cast is needed because the library has its own event types. It is not
 * in `index.ts`, because browsers bundle that file.
 */
export const nodeWebSocket: WebSocketConstructor = class extends WebSocket {
  constructor(url: string) {
    super(url, { maxPayload: MAX_PAYLOAD_BYTES, perMessageDeflate: false });
  }
} as unknown as new (
  url: string,
) => WebSocketLike;
