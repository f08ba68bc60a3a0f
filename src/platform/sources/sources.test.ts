import type { IncomingMessage, ServerResponse } from 'node:http';
import { Miniflare } from 'miniflare';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { random } from '../../../test/helpers/audio.ts';
import { serveRanges, startServer, type TestServer } from '../../../test/helpers/http-server.ts';
import type { SourceRef } from '../../jobs/ports.ts';
import { createSources, SourceReadError } from './index.ts';

const MIB = 1024 * 1024;
const limits = { maxBytes: 1024 * MIB };
const next = random(7);
const recording = Uint8Array.from({ length: 3 * MIB + 12_345 }, () => Math.floor(next() * 256));
const page = new TextEncoder().encode('<!DOCTYPE html>\n<html><head><title>Sign in</title></head></html>');

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

let miniflare: Miniflare;
let bucket: R2Bucket;
let server: TestServer;
let handler: Handler;

beforeAll(async () => {
  miniflare = new Miniflare({ modules: true, script: 'export default {};', r2Buckets: ['BUCKET'] });
  bucket = (await miniflare.getR2Bucket('BUCKET')) as unknown as R2Bucket;
  server = await startServer((request, response) => handler(request, response));
});

afterAll(async () => {
  await server.close();
  await miniflare.dispose();
});

beforeEach(() => {
  server.requests.length = 0;
});

afterEach(async () => {
  const { objects } = await bucket.list();
  await bucket.delete(objects.map(({ key }) => key));
});

const sourcesWith = (options: Partial<Parameters<typeof createSources>[0]> = {}) =>
  createSources({ bucket, allowLoopback: true, backoffMs: [5, 10, 20], ...options });

const resolve = (path: string, options?: Parameters<typeof sourcesWith>[0], maxBytes = limits.maxBytes) =>
  sourcesWith(options).resolve(server.origin + path, 'spool/job', { maxBytes });

async function refOf(path: string, options?: Parameters<typeof sourcesWith>[0]): Promise<SourceRef> {
  const resolved = await resolve(path, options);
  if (!resolved.ok) throw new Error(resolved.error.message);
  // What goes into a plan is what comes out of it.
  return JSON.parse(JSON.stringify(resolved.value));
}

const failure = (kind: string, message: RegExp) => ({
  ok: false,
  error: { kind, message: expect.stringMatching(message) },
});

async function expectWhole(ref: SourceRef, expected: Uint8Array): Promise<void> {
  const source = sourcesWith().open(ref);
  expect(source.sizeBytes).toBe(expected.length);
  for (const [offset, length] of [
    [0, 10],
    [1000, MIB],
    [expected.length - 7, 100],
    [expected.length, 5],
  ]) {
    const bytes = await source.read(offset, length);
    expect(Buffer.compare(bytes, expected.subarray(offset, offset + length))).toBe(0);
  }
}

async function readError(ref: SourceRef, options?: Parameters<typeof sourcesWith>[0]) {
  const error = await sourcesWith(options)
    .open(ref)
    .read(0, 1000)
    .then(() => undefined)
    .catch((thrown: unknown) => thrown);
  if (!(error instanceof SourceReadError)) throw new Error(`no SourceReadError but ${String(error)}`);
  return error.error;
}

const etag = '"v1"';
const rangeServer: Handler = (request, response) => serveRanges(request, response, { bytes: recording, etag });

describe('servers with ranges', () => {
  it('are read in place, pinned by the entity tag', async () => {
    handler = rangeServer;
    const ref = await refOf('/a.wav?token=secret');
    expect(ref).toEqual({
      kind: 'http',
      url: `${server.origin}/a.wav?token=secret`,
      validator: etag,
      sizeBytes: recording.length,
    });
    await expectWhole(ref, recording);
    expect((await bucket.list()).objects).toEqual([]);
  });

  it('may pin by the date of the last change', async () => {
    const lastModified = 'Tue, 01 Jul 2025 10:00:00 GMT';
    handler = (request, response) => serveRanges(request, response, { bytes: recording, lastModified });
    const ref = await refOf('/a.wav');
    expect(ref).toMatchObject({ kind: 'http', validator: lastModified });
    await expectWhole(ref, recording);
    handler = (request, response) =>
      serveRanges(request, response, { bytes: recording, lastModified: 'Tue, 01 Jul 2025 11:00:00 GMT' });
    expect(await readError(ref)).toMatchObject({ kind: 'changed' });
  });

  it('are copied when nothing pins the file, or only weakly', async () => {
    for (const weak of [undefined, 'W/"v1"']) {
      handler = (request, response) => serveRanges(request, response, { bytes: recording, etag: weak });
      const ref = await refOf('/a.wav');
      expect(ref).toEqual({ kind: 'object', key: 'spool/job', sizeBytes: recording.length });
      await expectWhole(ref, recording);
      await bucket.delete('spool/job');
    }
  });

  it('are copied when the address will expire', async () => {
    handler = rangeServer;
    expect(await refOf('/a.wav?X-Amz-Signature=abc&X-Amz-Expires=60')).toMatchObject({ kind: 'object' });
  });

  it('are copied when they compress', async () => {
    handler = (request, response) => {
      if (request.headers.range) response.setHeader('Content-Encoding', 'br');
      rangeServer(request, response);
    };
    const ref = await refOf('/a.wav');
    expect(ref).toMatchObject({ kind: 'object', sizeBytes: recording.length });
    await expectWhole(ref, recording);
  });

  it('may redirect twice; what was led to is remembered, and asked for anew when it stops working', async () => {
    let generation = 1;
    handler = (request, response) => {
      const path = request.url ?? '';
      const redirect = (to: string) => response.writeHead(302, { Location: to }).end();
      if (path === '/a') redirect('/b');
      else if (path === '/b') redirect(`/file?generation=${generation}`);
      else if (path === `/file?generation=${generation}`) rangeServer(request, response);
      else response.writeHead(403).end();
    };
    const ref = await refOf('/a');
    expect(ref).toMatchObject({ kind: 'http', url: `${server.origin}/a` });
    const source = sourcesWith().open(ref);
    server.requests.length = 0;
    await source.read(0, 10);
    await source.read(10, 10);
    expect(server.requests.map(({ path }) => path)).toEqual(['/a', '/b', '/file?generation=1', '/file?generation=1']);
    generation = 2;
    expect(Buffer.compare(await source.read(20, 10), recording.subarray(20, 30))).toBe(0);
  });
});

describe('reading', () => {
  let ref: SourceRef;
  beforeEach(async () => {
    handler = rangeServer;
    ref = await refOf('/a.wav');
    server.requests.length = 0;
  });

  it('says when the file changed, and never mixes two', async () => {
    handler = (request, response) => serveRanges(request, response, { bytes: recording, etag: '"v2"' });
    expect(await readError(ref)).toMatchObject({ kind: 'changed' });
    expect(server.requests).toHaveLength(1);
  });

  it('says so too when the server ignores If-Range', async () => {
    handler = (request, response) => {
      delete request.headers['if-range'];
      serveRanges(request, response, { bytes: recording, etag: '"v2"' });
    };
    expect(await readError(ref)).toMatchObject({ kind: 'changed' });
    handler = (request, response) => {
      delete request.headers['if-range'];
      serveRanges(request, response, { bytes: recording.subarray(0, MIB) });
    };
    expect(await readError(ref)).toMatchObject({ kind: 'changed' });
  });

  it('survives connections that break: before the headers, and inside the body', async () => {
    let count = 0;
    handler = (request, response) => {
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
    const bytes = await sourcesWith().open(ref).read(500, 100_000);
    expect(Buffer.compare(bytes, recording.subarray(500, 100_500))).toBe(0);
    expect(count).toBe(3);
  });

  it('gives up after three more tries', async () => {
    handler = (request) => request.socket.destroy();
    expect(await readError(ref)).toMatchObject({ kind: 'unreachable' });
    expect(server.requests).toHaveLength(4);
  });

  it('tries again on a busy server, and not on one that says no', async () => {
    handler = (_request, response) => response.writeHead(503).end();
    expect(await readError(ref)).toMatchObject({ kind: 'server_error', message: expect.stringContaining('503') });
    expect(server.requests).toHaveLength(4);
    server.requests.length = 0;
    handler = (_request, response) => response.writeHead(404).end();
    expect(await readError(ref)).toMatchObject({ kind: 'http_status', message: expect.stringContaining('404') });
    expect(server.requests).toHaveLength(1);
  });

  it('does not wait for ever for headers, nor for the rest of a body', async () => {
    handler = () => {};
    expect(await readError(ref, { headersTimeoutMs: 40, backoffMs: [] })).toMatchObject({ kind: 'timeout' });
    handler = (_request, response) => {
      response.writeHead(206, {
        'Content-Range': `bytes 0-999/${recording.length}`,
        'Content-Length': 1000,
        ETag: etag,
      });
      response.write(recording.subarray(0, 100));
    };
    expect(await readError(ref, { stallTimeoutMs: 40, backoffMs: [] })).toMatchObject({ kind: 'timeout' });
  });

  it('refuses another part than it asked for, and a part of the wrong length', async () => {
    const answer =
      (range: string, length: number): Handler =>
      (_request, response) => {
        response.writeHead(206, { 'Content-Range': range, ETag: etag });
        response.end(recording.subarray(0, length));
      };
    const once = { backoffMs: [] as number[] };
    handler = answer(`bytes 1-1000/${recording.length}`, 1000);
    expect(await readError(ref, once)).toMatchObject({ kind: 'server_error' });
    handler = answer('nonsense', 1000);
    expect(await readError(ref, once)).toMatchObject({ kind: 'server_error' });
    handler = answer(`bytes 0-999/${recording.length}`, 999);
    expect(await readError(ref, once)).toMatchObject({ kind: 'unreachable' });
    handler = answer(`bytes 0-999/${recording.length}`, 2000);
    expect(await readError(ref, once)).toMatchObject({ kind: 'unreachable' });
    handler = (request, response) => {
      delete request.headers.range;
      rangeServer(request, response);
    };
    expect(await readError(ref, once)).toMatchObject({ kind: 'server_error' });
  });
});

describe('servers without ranges', () => {
  it('are copied into R2, in parts, bit for bit', async () => {
    const large = new Uint8Array(20 * MIB + 17).map((_, i) => (i * 31 + (i >> 12)) & 255);
    handler = (_request, response) => response.end(large);
    const ref = await refOf('/a.wav');
    expect(ref).toEqual({ kind: 'object', key: 'spool/job', sizeBytes: large.length });
    await expectWhole(ref, large);
  });

  it('are copied once: a second run asks nobody', async () => {
    handler = (_request, response) => response.end(recording);
    const first = await refOf('/a.wav');
    server.requests.length = 0;
    expect(await refOf('/a.wav')).toEqual(first);
    expect(server.requests).toEqual([]);
  });

  it('may break off once or twice', async () => {
    let count = 0;
    handler = (request, response) => {
      response.writeHead(200, { 'Content-Length': recording.length });
      if (++count < 3) response.write(recording.subarray(0, 9000), () => request.socket.destroy());
      else response.end(recording);
    };
    await expectWhole(await refOf('/a.wav'), recording);
  });

  it('leave nothing behind when they break off for good, or stall', async () => {
    handler = (request, response) => {
      response.writeHead(200, { 'Content-Length': recording.length });
      response.write(recording.subarray(0, 9000), () => request.socket.destroy());
    };
    expect(await resolve('/a.wav')).toMatchObject(failure('unreachable', /broke off/));
    handler = (_request, response) => response.write(recording);
    expect(await resolve('/a.wav', { stallTimeoutMs: 60, backoffMs: [] })).toMatchObject(failure('timeout', /stopped/));
    expect((await bucket.list()).objects).toEqual([]);
  });

  it('are cut off at the limit, even when they never end', async () => {
    let sent = 0;
    handler = async (_request, response) => {
      const chunk = new Uint8Array(MIB);
      while (!response.destroyed && sent < 200) {
        sent++;
        if (!response.write(chunk)) await new Promise((done) => setTimeout(done, 5));
      }
    };
    const resolved = await resolve('/a.wav', {}, 20 * MIB);
    expect(resolved).toMatchObject(failure('too_large', /limit of 20 MiB/));
    expect(sent).toBeLessThan(100);
    expect((await bucket.list()).objects).toEqual([]);
  });

  it('are refused by their own word before the body is read', async () => {
    handler = (_request, response) => {
      response.writeHead(200, { 'Content-Length': 2048 * MIB });
      response.write(new Uint8Array(10));
    };
    expect(await resolve('/a.wav')).toMatchObject(failure('too_large', /limit of 1 GiB/));
    handler = (_request, response) => {
      response.writeHead(206, { 'Content-Range': `bytes 0-1023/${2048 * MIB}`, ETag: etag });
      response.end(new Uint8Array(1024));
    };
    expect(await resolve('/a.wav')).toMatchObject(failure('too_large', /limit of 1 GiB/));
  });
});

describe('what has no recording', () => {
  it.each([
    [404, 'http_status', /404 \(not found\)/],
    [403, 'http_status', /403 \(access is forbidden\)/],
    [401, 'http_status', /401/],
    [410, 'http_status', /410 \(gone\)/],
    [418, 'http_status', /418/],
    [500, 'server_error', /500/],
    [429, 'server_error', /429/],
  ])('status %i', async (status, kind, message) => {
    handler = (_request, response) => response.writeHead(status).end('no');
    expect(await resolve('/a.wav?token=secret')).toMatchObject(failure(kind, message));
    expect(server.requests).toHaveLength(kind === 'server_error' ? 4 : 1);
  });

  it('an empty file', async () => {
    handler = (_request, response) => response.end();
    expect(await resolve('/a.wav')).toMatchObject(failure('empty', /empty/));
    handler = (_request, response) => {
      response.flushHeaders();
      response.end();
    };
    expect(await resolve('/a.wav')).toMatchObject(failure('empty', /empty/));
    handler = (request, response) => serveRanges(request, response, { bytes: new Uint8Array(0), etag });
    expect(await resolve('/a.wav')).toMatchObject(failure('empty', /empty/));
    handler = (_request, response) => response.writeHead(204).end();
    expect(await resolve('/a.wav')).toMatchObject(failure('empty', /empty/));
  });

  it('a web page, with ranges and without; a recording that is only called one is taken', async () => {
    const type = 'text/html; charset=utf-8';
    handler = (request, response) => serveRanges(request, response, { bytes: page, etag, type });
    expect(await resolve('/a.wav')).toMatchObject(failure('web_page', /web page/));
    handler = (_request, response) => response.setHeader('Content-Type', type).end(page);
    expect(await resolve('/a.wav')).toMatchObject(failure('web_page', /web page/));
    handler = (request, response) => serveRanges(request, response, { bytes: recording, etag, type });
    expect(await resolve('/a.wav')).toMatchObject({ ok: true });
  });

  it('a server that is not there', async () => {
    const gone = await startServer(() => {});
    await gone.close();
    const resolved = await sourcesWith().resolve(`${gone.origin}/a.wav?token=secret`, 'spool/job', limits);
    expect(resolved).toMatchObject(failure('unreachable', /could not be reached/));
    expect(JSON.stringify(resolved)).not.toContain('secret');
  });

  it('a server that does not answer', async () => {
    handler = () => {};
    const resolved = await resolve('/a.wav', { headersTimeoutMs: 40 });
    expect(resolved).toMatchObject(failure('timeout', /in time/));
    expect(server.requests).toHaveLength(4);
  });
});

describe('redirects', () => {
  const redirectTo =
    (location: string, status = 302): Handler =>
    (_request, response) =>
      response.writeHead(status, { Location: location }).end();

  it('are followed twice and no more', async () => {
    handler = redirectTo('/a.wav');
    expect(await resolve('/a.wav')).toMatchObject(failure('too_many_redirects', /more than 2/));
    expect(server.requests).toHaveLength(3);
  });

  it.each([
    'http://10.0.0.1/',
    'http://169.254.169.254/latest/',
    '//[::ffff:192.168.0.1]/x',
    'http://metadata.google.internal/',
  ])('into private networks are refused: %s', async (location) => {
    handler = redirectTo(location);
    expect(await resolve('/a.wav')).toMatchObject(failure('private_address', /redirect/));
    expect(server.requests).toHaveLength(1);
  });

  it.each(['file:///etc/passwd', 'data:,x', 'http://user:pass@example.com/', 'http://[bad'])(
    'to %s are refused',
    async (location) => {
      handler = redirectTo(location, 307);
      expect(await resolve('/a.wav')).toMatchObject({ ok: false, error: { kind: 'invalid_url' } });
    },
  );
});

describe('addresses', () => {
  it('in private networks, and loopback where it is closed, are not asked', async () => {
    handler = rangeServer;
    const closed = createSources({ bucket, allowLoopback: false });
    expect(await closed.resolve(`${server.origin}/a.wav`, 'spool/job', limits)).toMatchObject(
      failure('private_address', /private/),
    );
    expect(await sourcesWith().resolve('http://10.1.2.3/a.wav', 'spool/job', limits)).toMatchObject(
      failure('private_address', /private/),
    );
    expect(await sourcesWith().resolve('ftp://example.com/a', 'spool/job', limits)).toMatchObject(
      failure('invalid_url', /http/),
    );
    expect(server.requests).toEqual([]);
  });

  it('with data in them are stored', async () => {
    const body = recording.subarray(0, 100_001);
    const forms = [
      `data:audio/wav;base64,${Buffer.from(body).toString('base64')}`,
      `data:;base64,${Buffer.from(body).toString('base64url')}`,
      `DATA:audio/wav;BASE64,${encodeURIComponent(Buffer.from(body).toString('base64'))}`,
      `data:audio/wav,${[...body.subarray(0, 3000)].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('')}`,
    ];
    for (const [i, url] of forms.entries()) {
      const expected = i === 3 ? body.subarray(0, 3000) : body;
      const resolved = await sourcesWith().resolve(url, `spool/${i}`, limits);
      expect(resolved).toEqual({ ok: true, value: { kind: 'object', key: `spool/${i}`, sizeBytes: expected.length } });
      const bytes = await sourcesWith()
        .open({ kind: 'object', key: `spool/${i}`, sizeBytes: expected.length })
        .read(0, expected.length);
      expect(Buffer.compare(bytes, expected)).toBe(0);
    }
  });

  it('with bad data are refused', async () => {
    const cases: [string, string][] = [
      ['data:audio/wav;base64', 'invalid_url'],
      ['data:audio/wav;base64,', 'empty'],
      ['data:,', 'empty'],
      ['data:audio/wav;base64,A', 'invalid_url'],
      ['data:audio/wav;base64,AA*A', 'invalid_url'],
      ['data:audio/wav;base64,AA==AAAA', 'invalid_url'],
      [`data:audio/wav;base64,${'A'.repeat(12 * MIB)}`, 'too_large'],
    ];
    for (const [url, kind] of cases) {
      expect(await sourcesWith().resolve(url, 'spool/job', limits)).toMatchObject({ ok: false, error: { kind } });
    }
  });
});

it('a stored recording that is gone, or another, is an error and not a mixture', async () => {
  await bucket.put('spool/x', recording.subarray(0, 1000));
  expect(await readError({ kind: 'object', key: 'spool/x', sizeBytes: 999 })).toMatchObject({ kind: 'changed' });
  await bucket.delete('spool/x');
  expect(await readError({ kind: 'object', key: 'spool/x', sizeBytes: 1000 })).toMatchObject({ kind: 'changed' });
});
