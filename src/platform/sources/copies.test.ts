import { describe, expect, it, vi } from 'vitest';
import { serveRanges } from '../../../test/helpers/http-server.ts';
import {
  breakAfter,
  COPY,
  etag,
  expectSame,
  type Handler,
  MIB,
  numbered,
  page,
  partOf,
  rangeServer,
  recording,
  startOf,
  useSources,
} from '../../../test/helpers/sources.ts';
import type { CopyState } from './copy.ts';

const world = useSources();
const large = numbered(12 * MIB + 17);
const PART_BYTES = 5 * MIB;

const largeServer: Handler = (request, response) => serveRanges(request, response, { bytes: large, etag });
const failed = (kind: string, message: RegExp) => ({
  kind: 'failed',
  error: { kind, message: expect.stringMatching(message) },
});
const ranges = () => world.requests.map(({ range }) => range);
const pause = (ms: number) => new Promise((done) => setTimeout(done, ms));

async function expectCopied(bytes: Uint8Array): Promise<void> {
  expectSame((await world.copied())!, bytes);
  expect(await world.storedKeys()).toEqual([COPY]);
}

describe('a copy', () => {
  const length = { 'Content-Length': large.length };
  it.each<[string, Handler]>([
    ['with ranges', largeServer],
    ['of unknown length', (_request, response) => response.end(large)],
    ['without ranges', (_request, response) => response.writeHead(200, length).end(large)],
    ['without ranges, pinned', (_request, response) => response.writeHead(200, { ...length, ETag: etag }).end(large)],
  ])('has all bytes of a file %s, and leaves no note', async (_name, server) => {
    world.handler = server;
    const { end, states } = await world.copy('/a.wav');
    expect(end).toEqual({ kind: 'whole' });
    expect(states.at(-1)).toBeUndefined();
    await expectCopied(large);
    expect(ranges()).toEqual(['bytes=0-']);
  });

  it('of less than a part, or of exactly whole parts, succeeds', async () => {
    for (const bytes of [recording, large.subarray(0, PART_BYTES), large.subarray(0, 2 * PART_BYTES)]) {
      world.handler = (request, response) => serveRanges(request, response, { bytes, etag });
      expect((await world.copy('/a.wav')).end).toEqual({ kind: 'whole' });
      await expectCopied(bytes);
      await world.bucket.delete(COPY);
    }
  });

  it('that exists is not made again', async () => {
    world.handler = largeServer;
    await world.copy('/a.wav');
    world.requests.length = 0;
    expect((await world.copy('/a.wav')).end).toEqual({ kind: 'whole' });
    expect(world.requests).toEqual([]);
  });

  it('continues at the next byte when the connection breaks or times out', async () => {
    world.handler = (request, response) => {
      const start = startOf(request);
      if (world.requests.length === 2) return;
      if (start < 9 * MIB) {
        const bytes = large.subarray(start, start + 3 * MIB);
        breakAfter(request, response, bytes, partOf(large, start));
      } else largeServer(request, response);
    };
    const { end } = await world.copy('/a.wav', { headersTimeoutMs: 200 });
    expect(end).toEqual({ kind: 'whole' });
    await expectCopied(large);
    expect(ranges()).toEqual([0, 3, 3, 6, 9].map((at) => `bytes=${at * MIB}-`));
  });

  it('fails and stores nothing if the connection breaks and the server has no ranges', async () => {
    const answers: Record<string, string | number>[] = [{}, length, { ...length, ETag: etag }];
    for (const headers of answers) {
      world.requests.length = 0;
      world.handler = (request, response) => breakAfter(request, response, large.subarray(0, 6 * MIB), headers);
      const { end, states } = await world.copy('/a.wav');
      expect(end).toMatchObject(failed('unreachable', /broke off/));
      expect(states.at(-1)).toBeUndefined();
      expect(world.requests).toHaveLength(1);
      expect(await world.storedKeys()).toEqual([]);
    }
  });

  it('fails if the server stops sending or is too slow', async () => {
    world.handler = (_request, response) => response.write(recording);
    expect((await world.copy('/a.wav', { stallTimeoutMs: 60 })).end).toMatchObject(failed('timeout', /stopped/));
    world.handler = async (_request, response) => {
      while (!response.destroyed) {
        response.write(recording.subarray(0, 10));
        await pause(20);
      }
    };
    expect((await world.copy('/a.wav', { stallTimeoutMs: 200 })).end).toMatchObject(
      failed('timeout', /less than 8 KiB a second/),
    );
    expect(await world.storedKeys()).toEqual([]);
  });

  it('stops at the size limit and closes the connection', async () => {
    let sent = 0;
    world.handler = async (_request, response) => {
      const chunk = new Uint8Array(MIB);
      while (!response.destroyed && sent < 200) {
        sent++;
        response.write(chunk);
        while (response.writableNeedDrain && !response.destroyed) await pause(1);
      }
    };
    const { end } = await world.copy('/a.wav', {}, { maxBytes: 20 * MIB });
    expect(end).toMatchObject(failed('too_large', /limit of 20 MiB/));
    expect(sent).toBeLessThan(100);
    await world.expectAnswersEnded();
    expect(await world.storedKeys()).toEqual([]);
  });

  it('of a declared size above the limit, a web page or an empty file is refused', async () => {
    world.handler = rangeServer;
    expect((await world.copy('/a.wav', {}, { maxBytes: MIB })).end).toMatchObject(failed('too_large', /1 MiB/));
    for (const isRanged of [true, false]) {
      const type = 'text/html; charset=utf-8';
      world.handler = (request, response) => {
        if (isRanged) serveRanges(request, response, { bytes: page, etag, type });
        else response.setHeader('Content-Type', type).end(page);
      };
      expect((await world.copy('/a.wav')).end).toMatchObject(failed('web_page', /web page/));
    }
    world.handler = (_request, response) => response.end();
    expect((await world.copy('/a.wav')).end).toMatchObject(failed('empty', /empty/));
    expect(await world.storedKeys()).toEqual([]);
  });

  it('whose signal is aborted stops and stores nothing', async () => {
    const controller = new AbortController();
    world.handler = async (request, response) => {
      response.writeHead(206, partOf(large, startOf(request)));
      response.write(large.subarray(0, 6 * MIB));
      await vi.waitFor(async () => expect(await world.storedKeys()).not.toEqual([]), 10_000);
      controller.abort();
      response.write(large.subarray(6 * MIB, 7 * MIB));
    };
    const { end, states } = await world.copy('/a.wav', {}, { signal: controller.signal });
    expect(end).toEqual({ kind: 'unwanted' });
    expect(states.at(-1)).toBeUndefined();
    expect(await world.storedKeys()).toEqual([]);
  });

  it('whose signal is aborted while its server fails stores nothing', async () => {
    const controller = new AbortController();
    world.handler = (request, response) => {
      if (startOf(request) > 0) controller.abort();
      if (startOf(request) > 0) response.writeHead(404).end();
      else breakAfter(request, response, large.subarray(0, 6 * MIB), partOf(large, 0));
    };
    const { states } = await world.copy('/a.wav', {}, { signal: controller.signal });
    expect(states.map((state) => state?.copiedBytes)).toEqual([PART_BYTES, undefined]);
    expect(await world.storedKeys()).toEqual([]);
  });
});

describe('a copy in several calls', () => {
  /** Sends `bytes` at once and the rest slowly. */
  const slowAfter =
    (bytes: number): Handler =>
    async (request, response) => {
      const start = startOf(request);
      response.writeHead(206, partOf(large, start));
      response.write(large.subarray(start, start + bytes));
      for (let at = start + bytes; at < large.length && !response.destroyed; at += 10_000) {
        response.write(large.subarray(at, at + 10_000));
        await pause(20);
      }
      response.end();
    };

  it('continues after the stored parts', async () => {
    world.handler = slowAfter(6 * MIB);
    const first = await world.copy('/a.wav', {}, { timeoutMs: 1000 });
    expect(first.end).toEqual({ kind: 'unfinished' });
    const state = first.states.at(-1);
    expect(state).toMatchObject({ copiedBytes: PART_BYTES, sizeBytes: large.length, validator: etag });
    expect(await world.copied()).toBeUndefined();
    await world.expectAnswersEnded();
    world.handler = largeServer;
    world.requests.length = 0;
    const second = await world.copy('/a.wav', {}, { state: JSON.parse(JSON.stringify(state)) });
    expect(second.end).toEqual({ kind: 'whole' });
    expect(second.states.at(-1)).toBeUndefined();
    expect(ranges()).toEqual([`bytes=${PART_BYTES}-`]);
    await expectCopied(large);
  });

  it('continues after a failure of the server', async () => {
    world.handler = (request, response) => {
      if (startOf(request) > 0) response.writeHead(503).end();
      else breakAfter(request, response, large.subarray(0, 6 * MIB), partOf(large, 0));
    };
    const first = await world.copy('/a.wav');
    expect(first.end).toMatchObject(failed('server_error', /503/));
    world.handler = largeServer;
    const { end } = await world.copy('/a.wav', {}, { state: first.states.at(-1) });
    expect(end).toEqual({ kind: 'whole' });
    await expectCopied(large);
  });

  it('fails and stores nothing if the file has changed', async () => {
    world.handler = slowAfter(6 * MIB);
    const first = await world.copy('/a.wav', {}, { timeoutMs: 1000 });
    world.handler = (request, response) => serveRanges(request, response, { bytes: large, etag: '"v2"' });
    const second = await world.copy('/a.wav', {}, { state: first.states.at(-1) });
    expect(second.end).toMatchObject(failed('changed', /changed/));
    expect(second.states).toEqual([undefined]);
    expect(await world.storedKeys()).toEqual([]);
    expect((await world.copy('/a.wav')).end).toEqual({ kind: 'whole' });
    await expectCopied(large);
  });

  it('is complete if the answer to its last call was lost', async () => {
    world.handler = largeServer;
    const { states } = await world.copy('/a.wav');
    const last = states.at(-2);
    expect(last?.copiedBytes).toBe(large.length);
    world.requests.length = 0;
    const again = await world.copy('/a.wav', {}, { state: last });
    expect(again.end).toEqual({ kind: 'whole' });
    expect(again.states).toEqual([undefined]);
    expect(world.requests).toEqual([]);
    await expectCopied(large);
  });

  it('is completed if only the completion of the upload is missing', async () => {
    world.handler = largeServer;
    const bucket = new Proxy(world.bucket, {
      get(target, name: keyof R2Bucket) {
        if (name !== 'createMultipartUpload') return target[name].bind(target);
        return async (key: string) => {
          const upload = await target.createMultipartUpload(key);
          const complete = () => Promise.reject(new Error('the bucket is unavailable'));
          const { uploadId, uploadPart, abort } = upload;
          return { key, uploadId, uploadPart: uploadPart.bind(upload), abort: abort.bind(upload), complete };
        };
      },
    });
    const saved: (CopyState | undefined)[] = [];
    await expect(world.copy('/a.wav', {}, { bucket, saved })).rejects.toThrow('unavailable');
    world.requests.length = 0;
    const { end } = await world.copy('/a.wav', {}, { state: saved.at(-1) });
    expect(end).toEqual({ kind: 'whole' });
    expect(world.requests).toEqual([]);
    await expectCopied(large);
  });

  it('fails if a call is too short for a part, or for a file without ranges', async () => {
    world.handler = slowAfter(MIB);
    const slow = failed('too_slow', /too slowly: \d\.\d MiB .*media/);
    expect((await world.copy('/a.wav', {}, { timeoutMs: 300 })).end).toMatchObject(slow);
    world.handler = async (_request, response) => {
      response.write(large.subarray(0, 6 * MIB));
      for (; !response.destroyed; await pause(20)) response.write(large.subarray(0, 10_000));
    };
    expect((await world.copy('/a.wav', {}, { timeoutMs: 1000 })).end).toMatchObject(slow);
    await world.expectAnswersEnded();
    expect(await world.storedKeys()).toEqual([]);
  });
});
