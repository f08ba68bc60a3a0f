import { build } from 'esbuild';
import { WebSocket as StandardWebSocket } from 'undici';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { WebSocket } from 'ws';
import { RollcallClient } from '../sdk/client.ts';
import { type Heard, type LiveServer, startLiveServer } from './live-server.fixture.ts';
import { nodeWebSocket } from './node.ts';
import { connectLiveStream, type OpenOptions, openLiveStream } from './open.ts';
import { LiveStream } from './stream.ts';
import type { LiveEvent, WebSocketConstructor } from './types.ts';

let server: LiveServer | undefined;
afterEach(() => server?.close());

const END = '{"type":"end_of_stream"}';
const startOf = (speaker: string, timestamp: number, match?: string | null): string =>
  JSON.stringify({ type: 'diarization_speaker_start', data: { speaker, timestamp, match } });
const endOf = (speaker: string, timestamp: number): string =>
  JSON.stringify({ type: 'diarization_speaker_end', data: { speaker, timestamp } });

async function open(
  answer: (socket: WebSocket, text: string | undefined, heard: Heard) => void,
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

// The second is the implementation behind Node's own global WebSocket, and behaves as a browser's does.
const implementations: [string, WebSocketConstructor][] = [
  ['ws', nodeWebSocket],
  ['a standard WebSocket', StandardWebSocket as unknown as WebSocketConstructor],
];

describe.each(implementations)('a live stream over %s', (_, webSocket) => {
  it('cuts audio of any chunking into frames of 100 ms, the last one padded, and tells events in order', async () => {
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
    expect(server?.requests).toEqual([{ latency: 1000, maxSpeakers: 3 }]);
    expect(server?.heard.texts).toEqual([END]);
    expect(server?.heard.frames.map(({ length }) => length)).toEqual([6400, 6400, 6400, 6400]);
    const bytes = Buffer.concat(server!.heard.frames);
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
  ])('tells what close code %i (%j) means', async (code, reason, expected) => {
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
    await stream.write(ramp(1600)); // nobody hears it, and nothing is thrown
    expect(await stream.end()).toMatchObject(expected);
  });

  it('tells a broken connection from an end', async () => {
    const stream = await open((socket) => socket.terminate(), { webSocket });
    await stream.write(ramp(1600));
    expect(await stream.end()).toMatchObject({ kind: 'lost', code: 1006 });
  });

  it('gives up at once when asked to', async () => {
    const stream = await open(() => {}, { webSocket });
    stream.abort();
    expect(await stream.closed).toEqual({ kind: 'aborted' });
    expect(await read(stream)).toEqual([]);
  });

  it('uses an address once, and says when it is refused', async () => {
    server = await startLiveServer((socket, text) => text === END && socket.close(1000));
    const created = await new RollcallClient({ url: server.url, key: 'k' }).createLive();
    if (!created.ok) throw new Error(created.error.message);
    const first = await connectLiveStream(created.value, { webSocket });
    expect(first.ok && (await first.value.end())).toEqual({ kind: 'done' });
    const second = await connectLiveStream(created.value, { webSocket });
    expect(second).toMatchObject({ ok: false, error: { kind: 'unreachable' } });
    const nowhere = await connectLiveStream({ id: 's', url: 'no address' }, { webSocket });
    expect(nowhere).toMatchObject({ ok: false, error: { kind: 'unreachable' } });
  });
});

it('waits while the connection is full, and sends everything in order', async () => {
  let peer: WebSocket | undefined;
  const stream = await open(
    (socket, text, { frames }) => {
      if (frames.length === 1) {
        peer = socket;
        socket.pause();
      }
      if (text === END) socket.close(1000);
    },
    { maxBufferedSeconds: 0.2 },
  );
  await stream.write(ramp(1600));
  while (!peer) await new Promise((wake) => setTimeout(wake, 5));
  let written = 0;
  const writing = (async () => {
    // 64 MiB in steps of 25 s: far more than the system's own buffers take.
    for (; written < 40; written++) await stream.write(new Float32Array(400_000).fill(written));
  })();
  await new Promise((wake) => setTimeout(wake, 500));
  expect(written).toBeLessThan(40);
  const before = stream.sentSeconds;
  await new Promise((wake) => setTimeout(wake, 200));
  expect(stream.sentSeconds).toBe(before);
  peer.resume();
  await writing;
  expect(await stream.end()).toEqual({ kind: 'done' });
  const { frames } = server!.heard;
  expect(frames).toHaveLength(1 + 40 * 250);
  expect(frames.slice(1).map((frame) => frame.readFloatLE(frame.length - 4))).toEqual(
    Array.from({ length: 40 * 250 }, (_, at) => Math.floor(at / 250)),
  );
});

it('sends frames of 100 ms at the rate that was asked for', async () => {
  const stream = await open((socket, text) => text === END && socket.close(1000), { sampleRate: 44_100 });
  await stream.write(new Float32Array(44_100));
  expect(stream.sentSeconds).toBe(1);
  await stream.write(new Float32Array(100));
  expect(await stream.end()).toEqual({ kind: 'done' });
  expect(server!.requests).toEqual([{ sampleRate: 44_100 }]);
  expect(server!.heard.frames.map(({ length }) => length)).toEqual(Array(11).fill(4 * 4410));
});

it('gives up when a caller who does not wait runs too far ahead', async () => {
  const stream = await open((socket) => socket.pause(), { maxBufferedSeconds: 0.2 });
  for (let second = 0; second < 400; second++) void stream.write(ramp(16_000));
  expect(await stream.closed).toMatchObject({ kind: 'policy' });
});

it('takes what is not understood for an error of the service', async () => {
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

it('gives a stream up whose connection takes nothing more: its end was waited for for ever', async () => {
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
