import { describe, expect, it } from 'vitest';
import { serveRanges } from '../../../test/helpers/http-server.ts';
import {
  COPY,
  etag,
  failure,
  type Handler,
  MIB,
  page,
  rangeServer,
  recording,
  useSources,
} from '../../../test/helpers/sources.ts';

const world = useSources();
const limits = { maxBytes: 1024 * MIB };

it('a file that cannot be read in place is copied in one piece, whatever its server offers', async () => {
  world.handler = (request, response) =>
    serveRanges(request, response, { bytes: recording, etag: `"${world.requests.length % 2}"` });
  const inPlace = await world.refOf('/a.wav');
  expect(await world.readError(inPlace)).toMatchObject({ kind: 'changed' });
  world.requests.length = 0;
  const resolved = await world.sources().resolve(`${world.origin}/a.wav`, 'spool/job', { ...limits, isCopied: true });
  expect(resolved).toMatchObject({ ok: true, value: { kind: 'object', key: COPY } });
  if (resolved.ok) await world.expectWhole(resolved.value, recording);
  expect(world.requests).toEqual([{ path: '/a.wav', range: undefined }]);
});

describe('a recording that turns out not to be readable by parts', () => {
  const other = recording.map((byte) => byte ^ 1);
  const copy = async (path: string) => {
    const ref = await world.refOf(path);
    if (ref.kind !== 'http') throw new Error('not read in place');
    world.requests.length = 0;
    return world.sources().copy(ref, 'spool/job');
  };

  it('is copied from the one of several machines that has the file that was found', async () => {
    // The first answers with the file, then the other one twice, then the first again.
    world.handler = (request, response) => {
      const isFirst = world.requests.length % 3 === 1 && request.headers.range !== undefined;
      const isAgain = world.requests.length === 3;
      if (isFirst || isAgain) serveRanges(request, response, { bytes: recording, etag });
      else serveRanges(request, response, { bytes: other, etag: '"v2"' });
    };
    const copied = await copy('/a.wav');
    expect(copied).toMatchObject({ ok: true, value: { kind: 'object', sizeBytes: recording.length } });
    if (copied.ok) await world.expectWhole(copied.value, recording);
    expect(world.requests.map(({ range }) => range)).toEqual([undefined, undefined, undefined]);
    expect(await copy('/a.wav').catch(String)).toMatch(/not read in place/);
  });

  it('has changed where nobody has that file any more, and nothing is stored', async () => {
    const ref = await world.refOf('/a.wav');
    world.handler = (request, response) => serveRanges(request, response, { bytes: other, etag: '"v2"' });
    if (ref.kind !== 'http') throw new Error('not read in place');
    expect(await world.sources().copy(ref, 'spool/job')).toMatchObject(failure('changed', /changed/));
    expect(await world.storedKeys()).toEqual([]);
  });
});

describe('where all recordings are copied', () => {
  const copiesAll = { copiesAll: true };

  it('a copy that nobody needs any more ends, and leaves nothing behind', async () => {
    const large = new Uint8Array(24 * MIB);
    const over = new AbortController();
    world.handler = (request, response) => {
      if (world.requests.length === 4) over.abort();
      serveRanges(request, response, { bytes: large, etag });
    };
    const options = { ...limits, signal: over.signal };
    const copied = await world.sources(copiesAll).resolve(`${world.origin}/a.wav`, 'spool/job', options);
    expect(copied).toMatchObject(failure('gone', /has ended/));
    expect(world.requests).toHaveLength(4);
    expect(await world.storedKeys()).toEqual([]);
  });

  it('those of servers with ranges are, and a copy that breaks off or waits goes on from there', async () => {
    const large = new Uint8Array(9 * MIB + 17).map((_, i) => (i * 31 + (i >> 12)) & 255);
    const faults = new Set([2, 4]);
    world.handler = (request, response) => {
      const { length } = world.requests;
      if (faults.has(length)) setTimeout(() => request.socket.destroy(), length === 2 ? 0 : 200);
      else serveRanges(request, response, { bytes: large, etag });
    };
    const resolved = await world.resolve('/a.wav', { ...copiesAll, headersTimeoutMs: 100 });
    expect(resolved).toMatchObject({ ok: true, value: { kind: 'object', sizeBytes: large.length } });
    if (resolved.ok) await world.expectWhole(resolved.value, large);
    expect(world.requests).toHaveLength(1 + 4 + faults.size);
  });

  it('a file that changes meanwhile is copied whole', async () => {
    world.handler = (request, response) =>
      serveRanges(request, response, { bytes: recording, etag: `"${world.requests.length % 2}"` });
    const resolved = await world.resolve('/a.wav', copiesAll);
    expect(resolved).toMatchObject({ ok: true, value: { kind: 'object' } });
    if (resolved.ok) await world.expectWhole(resolved.value, recording);
  });

  it.each<[string, Handler]>([
    [
      'gives no range any more once the file is pinned',
      (request, response) => {
        if (request.headers['if-range']) request.headers.range = undefined;
        serveRanges(request, response, { bytes: recording, etag });
      },
    ],
    [
      'gives less of a range than is asked for',
      (request, response) => {
        const [, start, end] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '') ?? [];
        if (start) request.headers.range = `bytes=${start}-${Math.min(Number(end), Number(start) + 99_999)}`;
        serveRanges(request, response, { bytes: recording, etag });
      },
    ],
  ])('a file of a server that %s is copied whole', async (_name, handler) => {
    world.handler = handler;
    const resolved = await world.resolve('/a.wav', copiesAll);
    expect(resolved).toMatchObject({ ok: true, value: { kind: 'object' } });
    if (resolved.ok) await world.expectWhole(resolved.value, recording);
  });

  it('one that is too large, or a web page, is not', async () => {
    world.handler = rangeServer;
    expect(await world.resolve('/a.wav', copiesAll, MIB)).toMatchObject(failure('too_large', /1 MiB/));
    world.handler = (request, response) =>
      serveRanges(request, response, { bytes: page, etag, type: 'text/html; charset=utf-8' });
    expect(await world.resolve('/a.wav', copiesAll)).toMatchObject(failure('web_page', /web page/));
    expect(await world.storedKeys()).toEqual([]);
  });
});
