import { WebSocket as StandardWebSocket } from 'undici';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { type LiveServer, startLiveServer } from '../../client/live/live-server.fixture.ts';
import { RollcallClient } from '../../client/sdk/client.ts';
import { listen } from './microphone.ts';

/** As much of the browser's as is used. */
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
    hear = () => this.port.onmessage?.({ data: new Float32Array(1600) });
  }
}

let refuse: (options: object) => void;
let hear: () => void;
let server: LiveServer;
let client: RollcallClient;
let unplug: () => void;
const track = {
  readyState: 'live',
  stop: vi.fn(),
  addEventListener: (_: string, tell: () => void) => {
    unplug = tell;
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

it('sends what is heard while the stream is opened, and ends it at the signal', async () => {
  const stop = new AbortController();
  const create = client.createLive.bind(client);
  vi.spyOn(client, 'createLive').mockImplementation((...asked) => {
    for (let portion = 0; portion < 5; portion++) hear();
    return create(...asked);
  });
  const seconds: number[] = [];
  const listening = listen(client, (_, heard) => void seconds.push(heard), stop.signal);
  await expect.poll(() => server.received.frames.length).toBe(5);
  stop.abort();
  expect(await listening).toBeUndefined();
  expect([seconds.at(-1), server.received.texts.length]).toEqual([0.5, 1]);
  expect(track.stop).toHaveBeenCalled();
});

it('sends nothing where it is given up while the stream is opened: that would be billed', async () => {
  const stop = new AbortController();
  const create = client.createLive.bind(client);
  vi.spyOn(client, 'createLive').mockImplementation(async (...asked) => {
    for (let portion = 0; portion < 5; portion++) hear();
    const created = await create(...asked);
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

it('is closed once, however many reasons there are at once: the page took the second for a fault of its own', async () => {
  const stop = new AbortController();
  const listening = listen(client, () => undefined, stop.signal);
  await expect.poll(() => server.requests.length).toBe(1);
  const framesHeard = () => {
    hear();
    return server.received.frames.length;
  };
  await expect.poll(framesHeard).toBeGreaterThan(0);
  stop.abort();
  unplug();
  await server.close(); // the connection is lost in the same moment
  expect(await listening).toEqual({ message: 'The microphone has gone.', details: [] });
});

it('lets the microphone go where the browser has no way to hear it, and takes another rate where it has', async () => {
  const unsupported = (): never => {
    throw new DOMException('rate', 'NotSupportedError');
  };
  refuse = unsupported;
  const { signal } = new AbortController();
  expect(await listen(client, () => undefined, signal)).toMatchObject({
    message: expect.stringMatching(/cannot bring/),
  });
  expect(track.stop).toHaveBeenCalled();

  refuse = (options) => ('sampleRate' in options ? unsupported() : undefined);
  const stop = new AbortController();
  const listening = listen(client, () => undefined, stop.signal);
  await expect.poll(() => server.requests).toEqual([{ resume: true, corrections: true, sampleRate: 48_000 }]);
  stop.abort();
  expect(await listening).toBeUndefined();
});
