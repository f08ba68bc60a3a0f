import type { RollcallClient } from '../sdk/client.ts';
import type { LiveCreated, LiveOptions, Outcome } from '../sdk/types.ts';
import { FRAMES_PER_SECOND } from './framer.ts';
import { LiveStream } from './stream.ts';
import type { WebSocketConstructor, WebSocketLike } from './types.ts';

export interface ConnectionOptions {
  /** Needed if there is no global WebSocket (Node 20): `nodeWebSocket` of `client/live/node.ts`. */
  readonly webSocket?: WebSocketConstructor;
  /**
   * `write` waits while the connection's buffer has this much audio; at least 0.1, 2 by default. After a network stall
   * the whole buffer arrives at once, and more than 5 s would end the stream.
   */
  readonly maxBufferedSeconds?: number;
  /** Sample rate in Hz with which the stream was created; 16,000 by default. */
  readonly sampleRate?: number;
  /** Longest wait for the connection. */
  readonly timeoutMs?: number;
}

export interface OpenOptions extends LiveOptions, ConnectionOptions {
  /** Ends a wait for the rate limit; then no stream is created. */
  readonly signal?: AbortSignal;
}

const DEFAULT_BUFFERED_SECONDS = 2;
const DEFAULT_TIMEOUT_MS = 30_000;

/**
 * Creates a live stream and connects to it; the stream survives the loss of its connection, unless `resume` is false.
 * Returns faults of the network and the service, and does not throw them.
 *
 * @throws Error if the platform has no WebSocket
 */
export async function openLiveStream(
  client: RollcallClient,
  { webSocket, maxBufferedSeconds, timeoutMs, signal, ...request }: OpenOptions = {},
): Promise<Outcome<LiveStream>> {
  const { sampleRate } = request;
  const connection = { webSocket: webSocketOf(webSocket), maxBufferedSeconds, timeoutMs, sampleRate };
  const created = await client.createLive({ resume: true, ...request }, signal);
  return created.ok ? connectLiveStream(created.value, connection) : created;
}

/**
 * Connects to a stream that another program created, for example a server that keeps the key and sends the address.
 * Returns faults of the network and the service, and does not throw them.
 *
 * @throws Error if the platform has no WebSocket
 */
export async function connectLiveStream(
  { id, url }: LiveCreated,
  {
    webSocket,
    maxBufferedSeconds = DEFAULT_BUFFERED_SECONDS,
    timeoutMs = DEFAULT_TIMEOUT_MS,
    sampleRate,
  }: ConnectionOptions = {},
): Promise<Outcome<LiveStream>> {
  const frames = Math.max(1, Math.round(maxBufferedSeconds * FRAMES_PER_SECOND));
  const WebSocketClass = webSocketOf(webSocket);
  let socket: WebSocketLike;
  try {
    socket = new WebSocketClass(url);
  } catch {
    return unreachable('The service sent an invalid address.');
  }
  // Created before the socket opens, because an event may follow at once.
  const stream = new LiveStream(id, socket, frames, sampleRate, (token) => {
    const address = new URL(url);
    address.search = `?resume=${encodeURIComponent(token)}`;
    return new WebSocketClass(address.href);
  });
  const failure = await openFailure(socket, timeoutMs);
  if (failure === undefined) return { ok: true, value: stream };
  stream.abort();
  return unreachable(failure);
}

function webSocketOf(given: WebSocketConstructor | undefined): WebSocketConstructor {
  const WebSocketClass = given ?? globalThis.WebSocket;
  if (!WebSocketClass) throw new Error('this platform has no WebSocket: pass one as webSocket');
  return WebSocketClass;
}

/** @returns the reason if the socket did not open; browsers do not report the cause */
function openFailure(socket: WebSocketLike, timeoutMs: number): Promise<string | undefined> {
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
