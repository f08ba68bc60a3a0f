import { build } from 'esbuild';
import { WebSocket as StandardWebSocket } from 'undici';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { WebSocket } from 'ws';
import { RollcallClient } from '../sdk/client.ts';
import { type LiveServer, type Received, startLiveServer } from './live-server.fixture.ts';
import { nodeWebSocket } from './node.ts';
import { connectLiveStream, type OpenOptions, openLiveStream } from './open.ts';
import { LiveStream } from './stream.ts';
import type { LiveClose, LiveEvent, WebSocketConstructor } from './types.ts';

let server: LiveServer | undefined;
afterEach(() => server?.close());

const END = '{"type":"end_of_stream"}';
const startOf = (speaker: string, timestamp: number, match?: string | null): string =>
  JSON.stringify({ type: 'diarization_speaker_start', data: { speaker, timestamp, match } });
const endOf = (speaker: string, timestamp: number): string =>
  JSON.stringify({ type: 'diarization_speaker_end', data: { speaker, timestamp } });

async function open(
  answer: (socket: WebSocket, text: string | undefined, received: Received) => void,
  options: OpenOptions = {},
): Promise<LiveStream> {
  server = await startLiveServer(answer);
  const client = new RollcallClient({ url: server.url, key: 'k' });
  const opened = await openLiveStream(client, { webSocket: nodeWebSocket, ...options });
  if (!opened.ok) throw new Error(opened.error.message);
  return opened.value;
}

const ramp = (length: number): Float32Array => Float32Array.from({ length }, (_, at) => at / 8000);

async function read(stream: LiveStream): Promise<LiveEvent[]> {
  const events: LiveEvent[] = [];
  for await (const event of stream) events.push(event);
  return events;
}

// The second is Node's own global WebSocket, which behaves like a browser's.
const implementations: [string, WebSocketConstructor][] = [
  ['ws', nodeWebSocket],
  ['a standard WebSocket', StandardWebSocket as unknown as WebSocketConstructor],
];

describe.each(implementations)('a live stream over %s', (_, webSocket) => {
  it('cuts chunks of any length into frames of 100 ms, pads the last one, and delivers events in order', async () => {
    const stream = await open(
      (socket, text, { frames }) => {
        if (text === undefined && frames.length === 2) socket.send(startOf('SPEAKER_00', 0.05));
        if (text !== END) return;
        socket.send(startOf('SPEAKER_01', 0.2, 'Alice'));
        socket.send(JSON.stringify({ type: 'of_a_newer_service' }));
        socket.send(endOf('SPEAKER_00', 0.31));
        socket.send(endOf('SPEAKER_01', 0.32));
        socket.close(1000);
      },
      { webSocket, latency: 1000, maxSpeakers: 3 },
    );
    const samples = ramp(5000);
    for (let at = 0, length = 1; at < samples.length; at += length, length = (length * 7) % 997) {
      await stream.write(samples.subarray(at, at + length));
    }
    const [events, close] = await Promise.all([read(stream), stream.end()]);
    expect(close).toEqual({ kind: 'done' });
    expect(events).toEqual([
      { kind: 'start', speaker: 'SPEAKER_00', timestampSeconds: 0.05 },
      { kind: 'start', speaker: 'SPEAKER_01', timestampSeconds: 0.2, match: 'Alice' },
      { kind: 'end', speaker: 'SPEAKER_00', timestampSeconds: 0.31 },
      { kind: 'end', speaker: 'SPEAKER_01', timestampSeconds: 0.32 },
    ]);
    expect(server?.requests).toEqual([{ resume: true, latency: 1000, maxSpeakers: 3 }]);
    expect(server?.received.texts).toEqual([END]);
    expect(server?.received.frames.map(({ length }) => length)).toEqual([6400, 6400, 6400, 6400]);
    const bytes = Buffer.concat(server!.received.frames);
    const received = Float32Array.from({ length: 6400 }, (_, at) => bytes.readFloatLE(4 * at));
    expect(received.subarray(0, 5000)).toEqual(samples);
    expect(received.subarray(5000).every((sample) => sample === 0)).toBe(true);
    expect(stream.sentSeconds).toBe(0.4);
  });

  it.each([
    [1000, '', { kind: 'length_limit' }],
    [1008, '', { kind: 'policy', message: 'Too much audio is waiting' }],
    [1008, 'too fast', { kind: 'policy', message: 'too fast' }],
    [1009, 'frame too large', { kind: 'too_large', message: 'frame too large' }],
    [1011, '', { kind: 'service_failed', message: 'Too much audio is waiting' }],
    [4000, 'x', { kind: 'lost', code: 4000, message: 'x' }],
  ])('maps close code %i (%j) to its meaning', async (code, reason, expected) => {
    const stream = await open(
      (socket) => {
        socket.send(JSON.stringify({ type: 'error', message: 'Too much audio is waiting' }));
        socket.close(code, reason);
      },
      { webSocket },
    );
    await stream.write(ramp(1600));
    expect(await read(stream)).toContainEqual({ kind: 'error', message: 'Too much audio is waiting' });
    expect(await stream.closed).toMatchObject(expected);
    await stream.write(ramp(1600)); // is dropped, and throws nothing
    expect(await stream.end()).toMatchObject(expected);
  });

  it('reports a broken connection as lost', async () => {
    const stream = await open((socket) => socket.terminate(), { webSocket });
    await stream.write(ramp(1600));
    expect(await stream.end()).toMatchObject({ kind: 'lost', code: 1006 });
  });

  it('aborts at once', async () => {
    const stream = await open(() => {}, { webSocket });
    stream.abort();
    expect(await stream.closed).toEqual({ kind: 'aborted' });
    expect(await read(stream)).toEqual([]);
  });

  it('reports a used or invalid address as unreachable', async () => {
    server = await startLiveServer((socket, text) => text === END && socket.close(1000));
    const created = await new RollcallClient({ url: server.url, key: 'k' }).createLive();
    if (!created.ok) throw new Error(created.error.message);
    const first = await connectLiveStream(created.value, { webSocket });
    expect(first.ok && (await first.value.end())).toEqual({ kind: 'done' });
    const second = await connectLiveStream(created.value, { webSocket });
    expect(second).toMatchObject({ ok: false, error: { kind: 'unreachable' } });
    const invalid = await connectLiveStream({ id: 's', url: 'no address' }, { webSocket });
    expect(invalid).toMatchObject({ ok: false, error: { kind: 'unreachable' } });
  });
});

describe.each(implementations)('a stream over %s that loses its connection', (_, webSocket) => {
  /**
   * Connects to a service that stores its state at every fourth frame. Each connection breaks after its number of
   * frames in `breaksAfter`.
   */
  async function openBreaking(breaksAfter: readonly number[], isRefusing = false) {
    const received: number[] = [];
    let token = 0;
    let storedFrame = 0;
    let breaks = 0;
    let sinceConnect = 0;
    const offer = (socket: WebSocket) =>
      socket.send(JSON.stringify({ type: 'resume', token: `r${++token}`, frame: storedFrame }));
    server = await startLiveServer(
      (socket, text, { frames }) => {
        if (text === END) return socket.close(1000);
        if (socket.readyState !== socket.OPEN) return;
        received.push(frames.at(-1)!.readFloatLE(0));
        socket.send(startOf('SPEAKER_00', received.length / 10));
        socket.send(endOf('SPEAKER_00', received.length / 10 + 0.05));
        if (received.length % 4 === 0) {
          storedFrame = received.length;
          offer(socket);
        }
        if (++sinceConnect === breaksAfter[breaks]) {
          breaks++;
          // A proper close, so that the token sent before it arrives.
          socket.close(1012);
        }
      },
      (socket, resumeToken) => {
        if (socket === undefined) return !isRefusing && resumeToken === `r${token}`;
        sinceConnect = 0;
        if (resumeToken !== null) {
          received.length = storedFrame;
          socket.send(JSON.stringify({ type: 'resumed', frame: storedFrame }));
        }
        offer(socket);
        return true;
      },
    );
    const opened = await openLiveStream(new RollcallClient({ url: server.url, key: 'k' }), { webSocket });
    if (!opened.ok) throw new Error(opened.error.message);
    return { stream: opened.value, received };
  }

  it('resumes from the stored frame, sends frames again, and delivers each event once', async () => {
    const { stream, received } = await openBreaking([6, 1, 9, 10]);
    const writing = (async () => {
      for (let frame = 0; frame < 30; frame++) await stream.write(new Float32Array(1600).fill(frame));
      return stream.end();
    })();
    const [events, close] = await Promise.all([read(stream), writing]);
    expect(close).toEqual({ kind: 'done' });
    expect(received).toEqual(Array.from({ length: 30 }, (_value, frame) => frame));
    const times = received.flatMap((frame) => [(frame + 1) / 10, (frame + 1) / 10 + 0.05]);
    expect(events.map((event) => 'timestampSeconds' in event && event.timestampSeconds)).toEqual(times);
    expect(stream.sentSeconds).toBe(3);
  });

  it('sends the end to the service when it is aborted', async () => {
    const { stream } = await openBreaking([]);
    await stream.write(new Float32Array(1600));
    for await (const _event of stream) break;
    stream.abort();
    await expect.poll(() => server!.received.texts).toEqual([END]);
    expect(await stream.closed).toEqual({ kind: 'aborted' });
  });

  it('is lost when the service refuses its token, or does not answer for a minute', async () => {
    const { stream } = await openBreaking([2], true);
    await stream.write(new Float32Array(3200));
    await expect.poll(() => server!.received.frames.length).toBe(2);
    vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] });
    try {
      const ended = stream.end();
      for (let second = 0; second < 70; second++) {
        await vi.advanceTimersByTimeAsync(1000);
        await new Promise((wake) => setImmediate(wake));
      }
      expect(await ended).toMatchObject({ kind: 'lost' });
    } finally {
      vi.useRealTimers();
    }
  });
});

it('delays audio that is ahead of the service and sends it in order', async () => {
  let sendsEvents = false;
  let sendEvent = () => {};
  const stream = await open((socket, text, { frames }) => {
    sendEvent = () => socket.send(endOf('SPEAKER_00', frames.length / 10));
    if (sendsEvents) sendEvent();
    if (text === END) socket.close(1000);
  });
  const writing = (async () => {
    for (let step = 0; step < 12; step++) await stream.write(new Float32Array(400_000).fill(step));
  })();
  await expect.poll(() => server!.received.frames.length).toBeGreaterThan(28);
  const [before, from] = [stream.sentSeconds, performance.now()];
  await new Promise((wake) => setTimeout(wake, 500));
  // Twice real time, and the rest of the first 3 s.
  expect(stream.sentSeconds - before).toBeLessThan(1 + (2 * (performance.now() - from)) / 1000);
  sendsEvents = true;
  sendEvent();
  await writing;
  expect(await stream.end()).toEqual({ kind: 'done' });
  const { frames } = server!.received;
  expect(frames.map((frame) => frame.readFloatLE(frame.length - 4))).toEqual(
    Array.from({ length: 12 * 250 }, (_, at) => Math.floor(at / 250)),
  );
});

describe('over a network that stalls', () => {
  const FRAME_BYTES = 6400;

  /** A connection that can stall, to a service that processes audio at twice real time. */
  class StallingSocket {
    bufferedAmount = 0;
    isStalled = false;
    received = 0;
    mostUnprocessed = 0;
    #unprocessed = 0;
    readonly #work = setInterval(() => {
      this.#unprocessed = Math.max(0, this.#unprocessed - 1);
    }, 50);

    send(data: string | Uint8Array): void {
      if (typeof data === 'string') return;
      this.bufferedAmount += data.length;
      if (!this.isStalled) this.#pass();
    }

    resume(): void {
      this.isStalled = false;
      this.#pass();
    }

    close(): void {
      clearInterval(this.#work);
    }

    addEventListener(): void {}

    #pass(): void {
      const frames = this.bufferedAmount / FRAME_BYTES;
      this.bufferedAmount = 0;
      this.received += frames;
      this.#unprocessed += frames;
      this.mostUnprocessed = Math.max(this.mostUnprocessed, this.#unprocessed);
    }
  }

  it.each([3, 6, 8, 25])(
    'sends the delayed audio of a microphone after a stall of %i s without overloading the service',
    { timeout: 20_000 },
    async (stallSeconds) => {
      vi.useFakeTimers();
      try {
        const socket = new StallingSocket();
        const stream = new LiveStream('one', socket as never, 20);
        let close: LiveClose | undefined;
        void stream.closed.then((result) => {
          close = result;
        });
        const seconds = 20 + 2 * stallSeconds;
        for (let frame = 0; frame < 10 * seconds; frame++) {
          if (frame === 60) socket.isStalled = true;
          if (frame === 60 + 10 * stallSeconds) socket.resume();
          void stream.write(new Float32Array(1600));
          await vi.advanceTimersByTimeAsync(100);
        }
        expect(close).toBeUndefined();
        expect(socket.mostUnprocessed / 10).toBeLessThan(3.5);
        expect(socket.received / 10).toBeGreaterThan(seconds - 0.5);
        stream.abort();
      } finally {
        vi.useRealTimers();
      }
    },
  );

  it('sends the delayed audio of a frozen page without overloading the service', async () => {
    vi.useFakeTimers();
    try {
      const socket = new StallingSocket();
      const stream = new LiveStream('one', socket as never, 20);
      for (let frame = 0; frame < 80; frame++) void stream.write(new Float32Array(1600));
      await vi.advanceTimersByTimeAsync(5000);
      expect(socket.received).toBe(80);
      expect(socket.mostUnprocessed).toBeLessThan(35);
      stream.abort();
    } finally {
      vi.useRealTimers();
    }
  });

  it('waits while the buffer of the connection is full', async () => {
    vi.useFakeTimers();
    try {
      const socket = new StallingSocket();
      const stream = new LiveStream('one', socket as never, 2);
      socket.isStalled = true;
      let written = 0;
      void (async () => {
        for (; written < 10; written++) await stream.write(new Float32Array(1600));
      })();
      await vi.advanceTimersByTimeAsync(5000);
      expect([written, stream.sentSeconds]).toEqual([1, 0.2]);
      socket.resume();
      await vi.advanceTimersByTimeAsync(100);
      expect([written, socket.received]).toEqual([10, 10]);
      stream.abort();
    } finally {
      vi.useRealTimers();
    }
  });
});

it('sends frames of 100 ms at the requested sample rate', async () => {
  const stream = await open((socket, text) => text === END && socket.close(1000), { sampleRate: 44_100 });
  await stream.write(new Float32Array(44_100));
  expect(stream.sentSeconds).toBe(1);
  await stream.write(new Float32Array(100));
  expect(await stream.end()).toEqual({ kind: 'done' });
  expect(server!.requests).toEqual([{ resume: true, sampleRate: 44_100 }]);
  expect(server!.received.frames.map(({ length }) => length)).toEqual(Array(11).fill(4 * 4410));
});

it('ends the stream when a caller that does not wait is too far ahead', async () => {
  const stream = await open((socket) => socket.pause(), { maxBufferedSeconds: 0.2 });
  for (let second = 0; second < 400; second++) void stream.write(ramp(16_000));
  expect(await stream.closed).toMatchObject({ kind: 'policy' });
});

it('reports invalid messages as errors of the service', async () => {
  const stream = await open((socket, text) => {
    if (text === END) return socket.close(1000);
    socket.send('{');
    socket.send('null');
    socket.send('{"type":"diarization_speaker_start","data":{"speaker":7,"timestamp":1}}');
    socket.send(Buffer.from([1]));
    for (const changes of ['7', '[{}]', '[{"start":2,"end":1,"from":"A","to":"B"}]']) {
      socket.send(`{"type":"diarization_speaker_correction","data":{"changes":${changes}}}`);
    }
  });
  await stream.write(ramp(1600));
  const [events] = await Promise.all([read(stream), stream.end()]);
  expect(events).toHaveLength(7);
  expect(new Set(events.map(({ kind }) => kind))).toEqual(new Set(['error']));
});

it('bundles for browsers without the library for Node', async () => {
  const { metafile, warnings } = await build({
    entryPoints: [`${import.meta.dirname}/index.ts`],
    bundle: true,
    write: false,
    metafile: true,
    platform: 'browser',
    format: 'esm',
  });
  expect(warnings).toEqual([]);
  const inputs = Object.keys(metafile.inputs);
  expect(inputs.some((path) => path.endsWith('client/live/stream.ts'))).toBe(true);
  expect(inputs.filter((path) => path.includes('node_modules'))).toEqual([]);
});

it('ends the stream as lost when the connection accepts no data for a minute', async () => {
  vi.useFakeTimers();
  try {
    const socket = { bufferedAmount: 1e9, send() {}, close() {}, addEventListener() {} };
    const stream = new LiveStream('one', socket as never, 10);
    void stream.write(new Float32Array(16_000));
    const ended = stream.end();
    await vi.advanceTimersByTimeAsync(61_000);
    expect(await ended).toMatchObject({ kind: 'lost' });
  } finally {
    vi.useRealTimers();
  }
});
