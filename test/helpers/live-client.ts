import { setTimeout as sleep } from 'node:timers/promises';
import { WebSocket } from 'ws';

const FRAME_SAMPLES = 1600;
export const END_OF_STREAM = '{"type":"end_of_stream"}';

/** A message of the service, parsed. */
export interface Received {
  readonly type: string;
  readonly message?: string;
  readonly data?: {
    readonly timestamp: number;
    readonly speaker: string;
    readonly match?: string | null;
    /** Only in corrections, which have no other field. */
    readonly changes?: readonly { start: number; end: number; from: string; to: string }[];
  };
}

/** A WebSocket client as a caller would write one. */
export interface LiveClient {
  readonly socket: WebSocket;
  /** Messages received so far. */
  readonly received: Received[];
  /** Settles when either side has closed the connection. */
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>;
  send(data: string | Uint8Array): void;
  /** Sends a frame every `everyMs`: faster than real time, but slow enough to be processed. */
  stream(frames: readonly Uint8Array[], everyMs?: number): Promise<void>;
}

/** The answer to a refused upgrade. */
export class Refused extends Error {
  constructor(readonly status: number) {
    super(`the upgrade was answered with ${status}`);
  }
}

/**
 * @param origin the header that a browser sends
 * @throws Refused if the status of the answer is not 101
 */
export function connect(url: string, origin?: string): Promise<LiveClient> {
  const socket = new WebSocket(url, { perMessageDeflate: false, origin });
  const received: Received[] = [];
  socket.on('message', (data) => received.push(JSON.parse(String(data)) as Received));
  const closed = new Promise<{ code: number; reason: string }>((done) => {
    socket.on('close', (code, reason) => done({ code, reason: reason.toString() }));
  });
  const client: LiveClient = {
    socket,
    received,
    closed,
    send: (data) => socket.send(data),
    async stream(frames, everyMs = 20) {
      for (const frame of frames) {
        socket.send(frame);
        await sleep(everyMs);
      }
    },
  };
  return new Promise((done, refuse) => {
    socket.on('open', () => done(client));
    socket.on('unexpected-response', (request, response) => {
      refuse(new Refused(response.statusCode ?? 0));
      request.destroy();
    });
    socket.on('error', refuse);
  });
}

/** One frame of 100 ms at 16 kHz whose samples are all `value`. */
export function frameOf(value: number): Uint8Array {
  return new Uint8Array(new Float32Array(FRAME_SAMPLES).fill(value).buffer);
}

/** Samples at 16 kHz as frames, without an incomplete last one. */
export function framesOf(samples: Float32Array): Uint8Array[] {
  return Array.from({ length: Math.floor(samples.length / FRAME_SAMPLES) }, (_, i) => {
    const frame = samples.slice(i * FRAME_SAMPLES, (i + 1) * FRAME_SAMPLES);
    return new Uint8Array(frame.buffer);
  });
}

/**
 * Faults in the turns of an ended stream: ends without a start, starts of an open turn, descending times.
 */
export function turnFaults(received: readonly Received[]): string[] {
  const faults: string[] = [];
  const open = new Set<string>();
  const latest = new Map<string, number>();
  for (const { type, data } of received) {
    if (!data || data.changes) continue;
    const { speaker, timestamp } = data;
    if (timestamp < (latest.get(speaker) ?? 0)) faults.push(`${speaker} goes back to ${timestamp}`);
    latest.set(speaker, timestamp);
    if (type === 'diarization_speaker_start') {
      if (open.has(speaker)) faults.push(`${speaker} starts twice`);
      open.add(speaker);
    } else if (!open.delete(speaker)) {
      faults.push(`${speaker} ends without a start`);
    }
  }
  for (const speaker of open) faults.push(`${speaker} is open at the end`);
  return faults;
}
