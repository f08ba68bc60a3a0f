import { WebSocket as StandardWebSocket } from 'undici';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { type LiveServer, startLiveServer } from '../../client/live/live-server.fixture.ts';
import { RollcallClient } from '../../client/sdk/client.ts';
import { listen, redraw } from './microphone.ts';

/** The used part of the browser's AudioContext. */
class FakeContext {
  readonly audioWorklet = { addModule: async () => undefined };
  readonly destination = {};
  state = 'running';
  #isClosing = false;
  constructor(readonly options: { readonly sampleRate?: number }) {
    refuse(options);
  }
  get sampleRate(): number {
    return this.options.sampleRate ?? 48_000;
  }
  createMediaStreamSource() {
    return { connect: () => ({ connect: () => undefined }) };
  }
  async close(): Promise<void> {
    if (this.#isClosing) throw new DOMException('is being closed', 'InvalidStateError');
    this.#isClosing = true;
    await new Promise((wake) => setTimeout(wake, 50));
    this.state = 'closed';
  }
}

class FakeNode {
  readonly port: { onmessage: ((event: { data: Float32Array }) => void) | null } = { onmessage: null };
  constructor() {
    record = (value = 0) => this.port.onmessage?.({ data: new Float32Array(1600).fill(value) });
  }
}

let refuse: (options: object) => void;
/** Delivers a frame of the microphone; all samples have this value. */
let record: (value?: number) => void;
let server: LiveServer;
let client: RollcallClient;
let unplug: () => void;
const track = {
  readyState: 'live',
  stop: vi.fn(),
  addEventListener: (_: string, callback: () => void) => {
    unplug = callback;
  },
};

beforeEach(async () => {
  refuse = () => undefined;
  track.stop.mockClear();
  const media = { getTracks: () => [track] };
  vi.stubGlobal('navigator', { mediaDevices: { getUserMedia: async () => media } });
  vi.stubGlobal('AudioContext', FakeContext);
  vi.stubGlobal('AudioWorkletNode', FakeNode);
  vi.stubGlobal('WebSocket', StandardWebSocket);
  server = await startLiveServer((socket, text) => text !== undefined && socket.close(1000));
  client = new RollcallClient({ url: server.url, key: 'k' });
});
afterEach(async () => {
  vi.unstubAllGlobals();
  await server.close();
});

it('sends the last three seconds before the stream opened and ends it at the signal', async () => {
  const stop = new AbortController();
  const create = client.createLive.bind(client);
  vi.spyOn(client, 'createLive').mockImplementation((...args) => {
    for (let frame = 0; frame < 40; frame++) record(frame);
    return create(...args);
  });
  const seconds: number[] = [];
  const listening = listen(client, (_, sentSeconds) => void seconds.push(sentSeconds), stop.signal);
  await expect.poll(() => server.received.frames.length).toBe(30);
  record(40);
  await expect.poll(() => server.received.frames.length).toBe(31);
  stop.abort();
  expect(await listening).toBeUndefined();
  const values = server.received.frames.map((frame) => frame.readFloatLE(0));
  expect(values).toEqual(Array.from({ length: 31 }, (_, index) => index + 10));
  expect([seconds.at(-1), server.received.texts.length]).toEqual([3.1, 1]);
  expect(track.stop).toHaveBeenCalled();
});

it('sends nothing when it is aborted while the stream opens', async () => {
  const stop = new AbortController();
  const create = client.createLive.bind(client);
  vi.spyOn(client, 'createLive').mockImplementation(async (...args) => {
    for (let frame = 0; frame < 5; frame++) record();
    const created = await create(...args);
    stop.abort();
    return created;
  });
  const shown = vi.fn();
  expect(await listen(client, shown, stop.signal)).toBeUndefined();
  expect(shown).not.toHaveBeenCalled();
  expect(track.stop).toHaveBeenCalled();
  await new Promise((wake) => setTimeout(wake, 200));
  expect(server.received).toEqual({ frames: [], texts: [] });
});

it('closes the microphone once when several reasons occur at the same time', async () => {
  const stop = new AbortController();
  const listening = listen(client, () => undefined, stop.signal);
  await expect.poll(() => server.requests.length).toBe(1);
  const receivedFrames = () => {
    record();
    return server.received.frames.length;
  };
  await expect.poll(receivedFrames).toBeGreaterThan(0);
  stop.abort();
  unplug();
  await server.close(); // the connection is lost at the same time
  expect(await listening).toEqual({ message: 'The microphone was disconnected.', details: [] });
});

it('uses a supported sample rate and closes the microphone if there is none', async () => {
  const unsupported = (): never => {
    throw new DOMException('rate', 'NotSupportedError');
  };
  refuse = unsupported;
  const { signal } = new AbortController();
  expect(await listen(client, () => undefined, signal)).toMatchObject({
    message: expect.stringMatching(/cannot read/),
  });
  expect(track.stop).toHaveBeenCalled();

  refuse = (options) => ('sampleRate' in options ? unsupported() : undefined);
  const stop = new AbortController();
  const listening = listen(client, () => undefined, stop.signal);
  await expect.poll(() => server.requests).toEqual([{ resume: true, corrections: true, sampleRate: 48_000 }]);
  stop.abort();
  expect(await listening).toBeUndefined();
});

it('draws at the interval, less often if drawing is slow, and never after the stop', () => {
  vi.useFakeTimers();
  let [now, durationMs, drawn] = [0, 1, 0];
  const draw = () => {
    drawn++;
    now += durationMs;
  };
  const stop = redraw(draw, 250, () => now);
  vi.advanceTimersByTime(1000);
  expect(drawn).toBe(4);
  durationMs = 100;
  vi.advanceTimersByTime(250);
  expect(drawn).toBe(5);
  vi.advanceTimersByTime(999);
  expect(drawn).toBe(5);
  vi.advanceTimersByTime(1);
  expect(drawn).toBe(6);
  stop();
  vi.advanceTimersByTime(10_000);
  expect(drawn).toBe(6);
  vi.useRealTimers();
});
