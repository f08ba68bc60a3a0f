import { beforeEach, describe, expect, it } from 'vitest';
import { serveRanges } from '../../../test/helpers/http-server.ts';
import { etag, type Handler, MIB, rangeServer, recording, useSources } from '../../../test/helpers/sources.ts';
import type { SourceRef } from '../../jobs/ports.ts';

const world = useSources();

describe('reading', () => {
  let ref: SourceRef;
  beforeEach(async () => {
    world.handler = rangeServer;
    ref = await world.refOf('/a.wav');
    world.requests.length = 0;
  });

  it('says when the file changed, and never mixes two', async () => {
    world.handler = (request, response) => serveRanges(request, response, { bytes: recording, etag: '"v2"' });
    expect(await world.readError(ref)).toMatchObject({ kind: 'changed' });
    expect(world.requests).toHaveLength(1);
  });

  it('says so too when the server ignores If-Range', async () => {
    world.handler = (request, response) => {
      delete request.headers['if-range'];
      serveRanges(request, response, { bytes: recording, etag: '"v2"' });
    };
    expect(await world.readError(ref)).toMatchObject({ kind: 'changed' });
    world.handler = (request, response) => {
      delete request.headers['if-range'];
      serveRanges(request, response, { bytes: recording.subarray(0, MIB) });
    };
    expect(await world.readError(ref)).toMatchObject({ kind: 'changed' });
  });

  it('survives connections that break: before the headers, and inside the body', async () => {
    let count = 0;
    world.handler = (request, response) => {
      count++;
      if (count === 1) {
        request.socket.destroy();
      } else if (count === 2) {
        const { range } = request.headers;
        const [start, end] = (range ?? '').slice(6).split('-').map(Number);
        response.writeHead(206, {
          'Content-Range': `bytes ${start}-${end}/${recording.length}`,
          'Content-Length': end - start + 1,
          ETag: etag,
        });
        response.write(recording.subarray(start, start + 100));
        setTimeout(() => request.socket.destroy(), 20);
      } else {
        rangeServer(request, response);
      }
    };
    const bytes = await world.sources().open(ref).read(500, 100_000);
    expect(Buffer.compare(bytes, recording.subarray(500, 100_500))).toBe(0);
    expect(count).toBe(3);
  });

  it('gives up after three more tries', async () => {
    world.handler = (request) => request.socket.destroy();
    expect(await world.readError(ref)).toMatchObject({ kind: 'unreachable' });
    expect(world.requests).toHaveLength(4);
  });

  it('tries again on a busy server, and not on one that says no', async () => {
    world.handler = (_request, response) => response.writeHead(503).end();
    expect(await world.readError(ref)).toMatchObject({ kind: 'server_error', message: expect.stringContaining('503') });
    expect(world.requests).toHaveLength(4);
    world.requests.length = 0;
    world.handler = (_request, response) => response.writeHead(404).end();
    expect(await world.readError(ref)).toMatchObject({ kind: 'http_status', message: expect.stringContaining('404') });
    expect(world.requests).toHaveLength(1);
  });

  it('ends in time where the server is too slow: the platform would end the step five times without a word', async () => {
    world.handler = (request, response) => void setTimeout(() => rangeServer(request, response), 50);
    const source = world.sources({ readTimeoutMs: 200 }).open(ref);
    const readAll = async () => {
      for (let at = 0; at < recording.length; at += 100_000) await source.read(at, 100_000);
    };
    await expect(readAll()).rejects.toMatchObject({
      error: {
        kind: 'too_slow',
        message: expect.stringMatching(/127\.0\.0\.1:\d+ sends too slowly: 0\.\d MiB in .*media/),
      },
    });
    expect(world.requests.length).toBeLessThan(6);
  });

  it('a read that timed out is left to the queue', async () => {
    world.handler = () => {};
    expect(await world.readError(ref, { headersTimeoutMs: 40 })).toMatchObject({ kind: 'timeout' });
    expect(world.requests).toHaveLength(1);
  });

  it('does not wait for ever for headers, nor for the rest of a body', async () => {
    world.handler = () => {};
    expect(await world.readError(ref, { headersTimeoutMs: 40, backoffMs: [] })).toMatchObject({ kind: 'timeout' });
    world.handler = (_request, response) => {
      response.writeHead(206, {
        'Content-Range': `bytes 0-999/${recording.length}`,
        'Content-Length': 1000,
        ETag: etag,
      });
      response.write(recording.subarray(0, 100));
    };
    expect(await world.readError(ref, { stallTimeoutMs: 40, backoffMs: [] })).toMatchObject({ kind: 'timeout' });
  });

  it('waits for a slow connection: only silence, and next to nothing, is an error', async () => {
    world.handler = async (_request, response) => {
      response.writeHead(206, {
        'Content-Range': `bytes 0-9999/${recording.length}`,
        'Content-Length': 10_000,
        ETag: etag,
      });
      for (let at = 0; at < 10_000; at += 1000) {
        response.write(recording.subarray(at, at + 1000));
        await new Promise((done) => setTimeout(done, 40));
      }
      response.end();
    };
    const bytes = await world.sources({ stallTimeoutMs: 200, backoffMs: [] }).open(ref).read(0, 10_000);
    expect(Buffer.compare(bytes, recording.subarray(0, 10_000))).toBe(0);
    expect(world.requests).toHaveLength(1);
  });

  it('gives nothing after it was closed, and asks for nothing again', async () => {
    const source = world.sources().open(ref);
    const under = source.read(0, 1000);
    source.close?.();
    expect((await under).length).toBe(0);
    expect(world.requests).toHaveLength(1);
  });

  it('fails soon where the server states a larger size than it has', async () => {
    const bytes = recording.subarray(0, 1500);
    const stated = 3 * bytes.length;
    world.handler = (request, response) => {
      const [from, to] = (/bytes=(\d+)-(\d+)/.exec(request.headers.range ?? '') ?? []).slice(1).map(Number);
      const last = Math.min(to, bytes.length - 1);
      response.writeHead(206, { 'Content-Range': `bytes ${from}-${last}/${stated}`, ETag: etag });
      response.end(bytes.subarray(from, last + 1));
    };
    const lying = { ...ref, sizeBytes: stated };
    const source = world.sources().open(lying);
    expect((await source.read(0, 1500)).length).toBe(1500);
    for (const [offset, length] of [
      [1000, 1000],
      [2000, 100],
    ] as const) {
      world.requests.length = 0;
      await expect(source.read(offset, length)).rejects.toMatchObject({
        error: { kind: 'incomplete', message: expect.stringMatching(/states 4500 bytes.*ends before/) },
      });
      expect(world.requests).toHaveLength(4);
    }
  });

  it('refuses another part than it asked for, and a part of the wrong length', async () => {
    const answer =
      (range: string, length: number): Handler =>
      (_request, response) => {
        response.writeHead(206, { 'Content-Range': range, ETag: etag });
        response.end(recording.subarray(0, length));
      };
    const once = { backoffMs: [] as number[] };
    world.handler = answer(`bytes 1-1000/${recording.length}`, 1000);
    expect(await world.readError(ref, once)).toMatchObject({ kind: 'server_error' });
    world.handler = answer('nonsense', 1000);
    expect(await world.readError(ref, once)).toMatchObject({ kind: 'server_error' });
    world.handler = answer(`bytes 0-999/${recording.length}`, 999);
    expect(await world.readError(ref, once)).toMatchObject({ kind: 'unreachable' });
    world.handler = answer(`bytes 0-999/${recording.length}`, 2000);
    expect(await world.readError(ref, once)).toMatchObject({ kind: 'unreachable' });
    world.handler = (request, response) => {
      delete request.headers.range;
      rangeServer(request, response);
    };
    expect(await world.readError(ref, once)).toMatchObject({ kind: 'no_ranges' });
  });
});

it('a stored recording that is gone, or another, is an error and not a mixture', async () => {
  await world.bucket.put('spool/x', recording.subarray(0, 1000));
  expect(await world.readError({ kind: 'object', key: 'spool/x', sizeBytes: 999 })).toMatchObject({ kind: 'changed' });
  await world.bucket.delete('spool/x');
  expect(await world.readError({ kind: 'object', key: 'spool/x', sizeBytes: 1000 })).toMatchObject({ kind: 'changed' });
});
