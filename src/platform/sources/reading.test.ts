import type { ServerResponse } from 'node:http';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { serveRanges } from '../../../test/helpers/http-server.ts';
import {
  breakAfter,
  etag,
  expectSame,
  type Handler,
  MIB,
  numbered,
  partOf,
  rangeServer,
  readForward,
  recording,
  startOf,
  useSources,
} from '../../../test/helpers/sources.ts';
import type { ByteSource } from '../../audio/audio-ports.ts';

const world = useSources();

/** Sends `bytesAtOnce` over each connection and then breaks it. */
const breaking =
  (bytes: Uint8Array, bytesAtOnce: number): Handler =>
  (request, response) => {
    const start = startOf(request);
    if (start + bytesAtOnce >= bytes.length) return serveRanges(request, response, { bytes, etag });
    breakAfter(request, response, bytes.subarray(start, start + bytesAtOnce), partOf(bytes, start));
  };

const pause = (ms: number) => new Promise((done) => setTimeout(done, ms));

describe('reading forward', () => {
  it('continues at the next byte when connections break, also before the headers', async () => {
    let count = 0;
    world.handler = (request, response) => {
      if (++count === 2) request.socket.destroy();
      else breaking(recording, MIB)(request, response);
    };
    const { source } = await world.inPlace('/a.wav');
    expectSame(await readForward(source), recording);
    expect(world.requests.map(({ range }) => range)).toEqual(
      [0, MIB, MIB, 2 * MIB, 3 * MIB].map((at) => `bytes=${at}-`),
    );
  });

  it('continues without limit while each connection makes progress', async () => {
    world.handler = breaking(recording, 100_000);
    const { source } = await world.inPlace('/a.wav', { backoffMs: [1, 1, 1] });
    expectSame(await readForward(source), recording);
    expect(world.requests).toHaveLength(Math.ceil(recording.length / 100_000));
  });

  it('gives up on a server that breaks off after a few bytes each time', async () => {
    world.handler = breaking(recording, 1000);
    const { source } = await world.inPlace('/a.wav');
    expect(await world.readError(source)).toMatchObject({
      kind: 'unreachable',
      message: expect.stringMatching(/broke off/),
    });
    expect(world.requests).toHaveLength(4);
  });

  it('gives up on a server without ranges that breaks off without progress', async () => {
    const headers = { 'Content-Length': recording.length, ETag: etag };
    world.handler = (request, response) => breakAfter(request, response, recording.subarray(0, MIB), headers);
    const { source } = await world.inPlace('/a.wav');
    expect(await world.readError(source)).toMatchObject({ kind: 'unreachable' });
    expect(world.requests).toHaveLength(4);
  });

  it('bounds the bytes that it skips on a server without ranges', async () => {
    const headers = { 'Content-Length': recording.length, ETag: etag };
    let sent = 0;
    world.handler = (request, response) => {
      sent += 100_000;
      breakAfter(request, response, recording.subarray(0, sent), headers);
    };
    const { source } = await world.inPlace('/a.wav', { backoffMs: [1, 1, 1] });
    expect(await world.readError(source)).toMatchObject({ kind: 'unreachable' });
    expect(world.requests.length).toBeLessThan(14);
  });

  it('skips the received bytes if the server stops supporting ranges', async () => {
    world.handler = (request, response) => {
      if (startOf(request) > 0) {
        delete request.headers.range;
        rangeServer(request, response);
      } else breakAfter(request, response, recording.subarray(0, MIB + 17), partOf(recording, 0));
    };
    const { source } = await world.inPlace('/a.wav');
    expectSame(await readForward(source), recording);
    expect(world.requests.map(({ range }) => range)).toEqual(['bytes=0-', `bytes=${MIB + 17}-`]);
  });

  it('requests the rest at once if the server sends a shorter range', async () => {
    const atOnce = 500_000;
    world.handler = (request, response) => {
      const start = startOf(request);
      const end = Math.min(recording.length, start + atOnce);
      const range = `bytes ${start}-${end - 1}/${recording.length}`;
      response.writeHead(206, { 'Content-Range': range, 'Content-Length': end - start, ETag: etag });
      response.end(recording.subarray(start, end));
    };
    const { source } = await world.inPlace('/a.wav', { backoffMs: [] });
    expectSame(await readForward(source), recording);
    expect(world.requests).toHaveLength(Math.ceil(recording.length / atOnce));
  });

  it('reports a changed file and never mixes two versions', async () => {
    for (const ignoresPin of [false, true]) {
      world.requests.length = 0;
      world.handler = (request, response) => {
        const isFirst = world.requests.length === 1;
        if (isFirst) return breakAfter(request, response, recording.subarray(0, MIB), partOf(recording, 0));
        if (ignoresPin) delete request.headers['if-range'];
        serveRanges(request, response, { bytes: recording, etag: '"v2"' });
      };
      const { source } = await world.inPlace('/a.wav');
      expect(await world.readError(source)).toMatchObject({ kind: 'changed' });
      expect(world.requests).toHaveLength(2);
    }
  });

  it('reports a changed file if only its size differs', async () => {
    for (const size of [2 * MIB, MIB]) {
      world.requests.length = 0;
      world.handler = (request, response) => {
        const isFirst = world.requests.length === 1;
        if (isFirst) return breakAfter(request, response, recording.subarray(0, MIB), partOf(recording, 0));
        delete request.headers['if-range'];
        serveRanges(request, response, { bytes: recording.subarray(0, size) });
      };
      const { source } = await world.inPlace('/a.wav');
      expect(await world.readError(source)).toMatchObject({ kind: 'changed' });
      expect(world.requests).toHaveLength(2);
    }
  });

  it('retries status 503, but not status 404', async () => {
    for (const [status, kind, requests] of [
      [503, 'server_error', 4],
      [404, 'http_status', 2],
    ] as const) {
      world.requests.length = 0;
      world.handler = (request, response) => {
        if (world.requests.length > 1) response.writeHead(status, { ETag: '"error page"' }).end();
        else breakAfter(request, response, recording.subarray(0, MIB), partOf(recording, 0));
      };
      const { source } = await world.inPlace('/a.wav');
      expect(await world.readError(source)).toMatchObject({ kind, message: expect.stringContaining(String(status)) });
      expect(world.requests).toHaveLength(requests);
    }
  });

  it('refuses another byte range than it requested', async () => {
    for (const range of [`bytes 1-${recording.length - 1}/${recording.length}`, 'nonsense']) {
      world.handler = (request, response) => {
        if (startOf(request) === 0) breakAfter(request, response, recording.subarray(0, MIB), partOf(recording, 0));
        else response.writeHead(206, { 'Content-Range': range, ETag: etag }).end(recording);
      };
      const { source } = await world.inPlace('/a.wav', { backoffMs: [5] });
      expect(await world.readError(source)).toMatchObject({
        kind: 'server_error',
        message: expect.stringMatching(/another byte range/),
      });
    }
  });

  it.each([
    ['breaks the connection', 'unreachable'],
    ['ends the body', 'incomplete'],
  ])('fails soon if the server sends fewer bytes than announced and %s', async (how, kind) => {
    const bytes = recording.subarray(0, MIB);
    const stated = 3 * bytes.length;
    world.handler = (request, response) => {
      const start = startOf(request);
      response.writeHead(206, { 'Content-Range': `bytes ${start}-${stated - 1}/${stated}`, ETag: etag });
      response.write(bytes.subarray(start), () => {
        if (how === 'ends the body') response.end();
        else setTimeout(() => request.socket.destroy(), 5);
      });
    };
    const { source } = await world.inPlace('/a.wav');
    expect(await world.readError(source)).toMatchObject({
      kind,
      ...(how === 'ends the body' && { message: expect.stringMatching(/announced 3145728 bytes but sent fewer/) }),
    });
    expect(world.requests.length).toBeLessThan(7);
  });

  it('gives up after three retries, and at once after a timeout', async () => {
    let isBroken = false;
    world.handler = (request, response) => {
      if (startOf(request) === 0) breakAfter(request, response, recording.subarray(0, MIB), partOf(recording, 0));
      else if (isBroken) request.socket.destroy();
    };
    const late = await world.inPlace('/a.wav', { headersTimeoutMs: 100 });
    expect(await world.readError(late.source)).toMatchObject({ kind: 'timeout' });
    expect(world.requests).toHaveLength(2);
    world.requests.length = 0;
    isBroken = true;
    const broken = await world.inPlace('/a.wav');
    expect(await world.readError(broken.source)).toMatchObject({ kind: 'unreachable' });
    expect(world.requests).toHaveLength(4);
  });

  it('gives up when the body stalls', async () => {
    world.handler = (_request, response) => {
      response.writeHead(206, partOf(recording, 0));
      response.write(recording.subarray(0, 100));
    };
    const { source } = await world.inPlace('/a.wav', { stallTimeoutMs: 40 });
    expect(await world.readError(source)).toMatchObject({
      kind: 'timeout',
      message: expect.stringMatching(/stopped sending/),
    });
    expect(world.requests).toHaveLength(1);
  });

  it('gives up on a server that sends less than 8 KiB a second', async () => {
    world.handler = async (_request, response) => {
      response.writeHead(206, partOf(recording, 0));
      while (!response.destroyed) {
        response.write(recording.subarray(0, 10));
        await pause(20);
      }
    };
    const { source } = await world.inPlace('/a.wav', { stallTimeoutMs: 200 });
    expect(await world.readError(source)).toMatchObject({
      kind: 'timeout',
      message: expect.stringMatching(/less than 8 KiB a second/),
    });
  });

  it('waits for a slow connection that keeps sending', async () => {
    const bytes = recording.subarray(0, 10_000);
    world.handler = async (_request, response) => {
      response.writeHead(206, partOf(bytes, 0));
      for (let at = 0; at < 10_000; at += 1000) {
        response.write(bytes.subarray(at, at + 1000));
        await pause(40);
      }
      response.end();
    };
    const { source } = await world.inPlace('/a.wav', { stallTimeoutMs: 200, backoffMs: [] });
    expectSame(await readForward(source), bytes);
    expect(world.requests).toHaveLength(1);
  });

  it('pauses after each mebibyte', async () => {
    world.handler = rangeServer;
    const pauseOnce = vi.fn(async () => undefined);
    const { source } = await world.inPlace('/a.wav', { pause: pauseOnce });
    await readForward(source);
    expect(pauseOnce.mock.calls.length).toBeGreaterThanOrEqual(2);
    expect(pauseOnce.mock.calls.length).toBeLessThanOrEqual(3);
  });
});

describe('a source that is closed', () => {
  const large = numbered(20 * MIB);
  let source: ByteSource;
  let close: (() => void) | undefined;
  /** Responses that stall after their first mebibyte. */
  let stalled: ServerResponse[];
  beforeEach(async () => {
    stalled = [];
    world.handler = (request, response) => {
      stalled.push(response);
      const start = startOf(request);
      response.writeHead(206, partOf(large, start));
      response.write(large.subarray(start, start + MIB));
    };
    ({ source, close } = await world.inPlace('/a.wav'));
  });

  it('closes a response that was not read', async () => {
    close?.();
    close?.();
    await world.expectAnswersEnded();
  });

  it('closes the first response if reading begins at another offset', async () => {
    const stream = await source.open(5 * MIB);
    expect((await stream.read())?.[0]).toBe(large[5 * MIB]);
    await vi.waitFor(() => expect(stalled.map((response) => response.destroyed)).toEqual([true, false]));
    stream.close();
  });

  it('ends the previous stream when another is opened', async () => {
    const first = await source.open(0);
    await first.read();
    const second = await source.open(MIB);
    expect(await first.read()).toBeUndefined();
    await second.read();
    await vi.waitFor(() => expect(stalled.map((response) => response.destroyed)).toEqual([true, false]));
    close?.();
  });

  it('returns no more bytes, makes no more requests, and may be closed twice', async () => {
    const stream = await source.open(0);
    for (let received = 0; received < MIB; ) received += (await stream.read())?.length ?? MIB;
    const pending = stream.read();
    await pause(20);
    stream.close();
    stream.close();
    expect(await pending).toBeUndefined();
    expect(await stream.read()).toBeUndefined();
    await world.expectAnswersEnded();
    expect(world.requests).toHaveLength(1);
  });

  it('closes a response that arrives after the close', async () => {
    let respond = () => {};
    world.handler = (request, response) => {
      respond = () => rangeServer(request, response);
    };
    const stream = await source.open(MIB);
    const pending = stream.read();
    await vi.waitFor(() => expect(world.requests).toHaveLength(2));
    stream.close();
    respond();
    expect(await pending).toBeUndefined();
    await world.expectAnswersEnded();
    expect(world.requests).toHaveLength(2);
  });

  it('makes no further retry', async () => {
    const patient = await world.inPlace('/a.wav', { backoffMs: [600, 600] });
    world.handler = (request) => request.socket.destroy();
    const stream = await patient.source.open(MIB);
    const pending = stream.read();
    await vi.waitFor(() => expect(world.requests).toHaveLength(3));
    await pause(20);
    stream.close();
    expect(await pending).toBeUndefined();
    await pause(700);
    expect(world.requests).toHaveLength(3);
    close?.();
  });
});

describe('ranges read during a stream', () => {
  it('do not move the stream', async () => {
    world.handler = rangeServer;
    const { source, close } = await world.inPlace('/a.wav');
    const stream = await source.open(0);
    const first = (await stream.read())!.slice();
    expectSame(await source.read(2 * MIB, 1000), recording.subarray(2 * MIB, 2 * MIB + 1000));
    const second = (await stream.read())!;
    expectSame(second, recording.subarray(first.length, first.length + second.length));
    expect(world.requests.map(({ range }) => range)).toEqual(['bytes=0-', `bytes=${2 * MIB}-${2 * MIB + 999}`]);
    close?.();
  });

  it('continue after a broken connection, and return no more than requested', async () => {
    world.handler = (request, response) => {
      if (world.requests.length === 2)
        breakAfter(request, response, recording.subarray(500, 600), partOf(recording, 500));
      else rangeServer(request, response);
    };
    const { source, close } = await world.inPlace('/a.wav');
    expectSame(await source.read(500, 100_000), recording.subarray(500, 100_500));
    expect(world.requests.at(-1)?.range).toBe('bytes=600-100499');
    world.handler = (request, response) => {
      delete request.headers.range;
      rangeServer(request, response);
    };
    expectSame(await source.read(500, 100_000), recording.subarray(500, 100_500));
    close?.();
  });
});

describe('a stored recording', () => {
  const open = (key: string, sizeBytes: number, etag?: string) =>
    world.sources().openObject({ key, sizeBytes, etag }).source;

  it('is read forward and by ranges', async () => {
    await world.bucket.put('work/x', recording);
    await world.expectWhole(open('work/x', recording.length), recording);
  });

  it('that was deleted or replaced gives an error', async () => {
    const stored = await world.bucket.put('work/x', recording.subarray(0, 1000));
    const source = open('work/x', 1000, stored?.etag);
    expectSame(await readForward(source), recording.subarray(0, 1000));
    expect(await world.readError(open('work/x', 999))).toMatchObject({ kind: 'changed' });
    await world.bucket.put('work/x', recording.subarray(1, 1001));
    expect(await world.readError(source)).toMatchObject({ kind: 'changed' });
    await world.bucket.delete('work/x');
    expect(await world.readError(open('work/x', 1000))).toMatchObject({ kind: 'changed' });
  });

  it('is requested again when the bucket fails, and returns nothing once it is closed', async () => {
    await world.bucket.put('work/x', recording);
    let fails = 2;
    let reads = 0;
    const bucket = new Proxy(world.bucket, {
      get(target, name: keyof R2Bucket) {
        if (name !== 'get') return target[name].bind(target);
        return async (key: string, options: R2GetOptions) => {
          reads++;
          const object = await target.get(key, options);
          if (reads > fails || !object) return object;
          const { size, etag } = object;
          return { size, etag, arrayBuffer: () => Promise.reject(new Error('the bucket is unavailable')) };
        };
      },
    });
    const { source } = world.sources({ bucket }).openObject({ key: 'work/x', sizeBytes: recording.length });
    expectSame(await readForward(source), recording);
    expect(reads).toBe(3);
    fails = 0;
    reads = 0;
    const stream = await source.open(0);
    const pending = stream.read();
    stream.close();
    stream.close();
    expect(await pending).toBeUndefined();
    expect(await stream.read()).toBeUndefined();
    expect(reads).toBe(1);
  });
});
