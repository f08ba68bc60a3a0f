import type { RollcallClient } from '../sdk/client.ts';
import type { LiveOptions, Outcome } from '../sdk/types.ts';
import { FRAME_BYTES } from './framer.ts';
import { LiveStream } from './stream.ts';
import type { WebSocketConstructor, WebSocketLike } from './types.ts';

export interface OpenOptions extends LiveOptions {
  /** Where there is no global WebSocket (Node 20): `nodeWebSocket` of `client/live/node.ts`. */
  readonly webSocket?: WebSocketConstructor;
  /** Audio that may wait in the connection's buffer before `write` waits; at least 0.1, 2 by default. */
  readonly maxBufferedSeconds?: number;
  /** Longest wait for the connection. */
  readonly timeoutMs?: number;
}

const DEFAULT_BUFFERED_SECONDS = 2;
const DEFAULT_TIMEOUT_MS = 30_000;
const FRAMES_PER_SECOND = 10;

/**
 * Creates a live stream and connects to it. Never throws for what the network or the service does.
 *
 * @throws Error without any WebSocket in the platform
 */
export async function openLiveStream(
  client: RollcallClient,
  { webSocket = globalThis.WebSocket, maxBufferedSeconds, timeoutMs, ...request }: OpenOptions = {},
): Promise<Outcome<LiveStream>> {
  if (!webSocket) throw new Error('this platform has no WebSocket: pass one as webSocket');
  const frames = Math.max(1, Math.round((maxBufferedSeconds ?? DEFAULT_BUFFERED_SECONDS) * FRAMES_PER_SECOND));
  const created = await client.createLive(request);
  if (!created.ok) return created;
  const { id, url } = created.value;
  let socket: WebSocketLike;
  try {
    socket = new webSocket(url);
  } catch {
    return unreachable('The service gave an address that is none.');
  }
  // Before it opens: an event may follow at once.
  const stream = new LiveStream(id, socket, frames * FRAME_BYTES);
  const failure = await opening(socket, timeoutMs ?? DEFAULT_TIMEOUT_MS);
  if (failure === undefined) return { ok: true, value: stream };
  stream.abort();
  return unreachable(failure);
}

/** @returns why it did not open; browsers do not tell the cause */
function opening(socket: WebSocketLike, timeoutMs: number): Promise<string | undefined> {
  return new Promise((done) => {
    const timer = setTimeout(() => done('The live channel does not answer in time'), timeoutMs);
    const settle = (failure?: string): void => {
      clearTimeout(timer);
      done(failure);
    };
    socket.addEventListener('open', () => settle());
    socket.addEventListener('error', ({ message }) =>
      settle(`The live channel cannot be opened${message ? `: ${message}` : ''}`),
    );
    socket.addEventListener('close', ({ code }) => settle(`The live channel was closed at once (code ${code})`));
  });
}

function unreachable(message: string): Outcome<never> {
  return { ok: false, error: { kind: 'unreachable', message } };
}
