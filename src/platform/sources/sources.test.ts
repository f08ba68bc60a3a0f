import { describe, expect, it } from 'vitest';
import { serveRanges, startServer } from '../../../test/helpers/http-server.ts';
import {
  breakAfter,
  etag,
  expectSame,
  failure,
  type Handler,
  MIB,
  page,
  partOf,
  rangeServer,
  readForward,
  recording,
  startOf,
  useSources,
} from '../../../test/helpers/sources.ts';

const world = useSources();
const MAX_BYTES = 1024 * MIB;

describe('servers with ranges', () => {
  it('are read in place, pinned by the entity tag, over one connection', async () => {
    world.handler = rangeServer;
    const { source, identity, close } = await world.inPlace('/a.wav?token=secret');
    expect(identity).toBe(`${etag} ${recording.length}`);
    expect(source.canSeek).toBe(true);
    expectSame(await readForward(source), recording);
    expect(world.requests).toEqual([{ path: '/a.wav?token=secret', range: 'bytes=0-' }]);
    await world.expectWhole(source, recording);
    close?.();
    expect(await world.storedKeys()).toEqual([]);
  });

  it('may be pinned by the date of the last change', async () => {
    const lastModified = 'Tue, 01 Jul 2025 10:00:00 GMT';
    world.handler = (request, response) => serveRanges(request, response, { bytes: recording, lastModified });
    const { source, identity } = await world.inPlace('/a.wav');
    expect(identity).toBe(`${lastModified} ${recording.length}`);
    await world.expectWhole(source, recording);
    world.handler = (request, response) =>
      serveRanges(request, response, { bytes: recording, lastModified: 'Tue, 01 Jul 2025 11:00:00 GMT' });
    expect(await world.readError(source, 5)).toMatchObject({ kind: 'changed' });
  });

  it('are copied without a strong validator', async () => {
    for (const weak of [undefined, 'W/"v1"']) {
      world.handler = (request, response) => serveRanges(request, response, { bytes: recording, etag: weak });
      expect(await world.open('/a.wav')).toEqual({ ok: true, value: 'copy' });
      const fetched = await world.fetch('/a.wav');
      expect(fetched).toMatchObject({ ok: true, how: 'copied' });
      if (fetched.ok) expectSame(fetched.bytes, recording);
      await world.bucket.delete(await world.storedKeys());
    }
  });

  it('are copied completely without a validator or a total length', async () => {
    for (const total of [recording.length, '*']) {
      world.handler = (request, response) => {
        if (request.headers.range) {
          response.writeHead(206, { 'Content-Range': `bytes 0-1023/${total}`, 'Content-Length': 1024 });
          response.end(recording.subarray(0, 1024));
        } else response.end(recording);
      };
      const fetched = await world.fetch('/a.wav');
      expect(fetched).toMatchObject({ ok: true, how: 'copied' });
      if (fetched.ok) expectSame(fetched.bytes, recording);
      await world.bucket.delete(await world.storedKeys());
    }
  });

  it('are read without ranges if their ranges are compressed', async () => {
    world.handler = (request, response) => {
      if (request.headers.range) response.setHeader('Content-Encoding', 'br');
      rangeServer(request, response);
    };
    const fetched = await world.fetch('/a.wav');
    expect(fetched).toMatchObject({ ok: true });
    if (fetched.ok) expectSame(fetched.bytes, recording);
    expect(world.requests.map(({ range }) => range)).toEqual(['bytes=0-', undefined]);
  });

  it('may redirect twice; a broken connection starts again at the first URL', async () => {
    let generation = 1;
    world.handler = (request, response) => {
      const path = request.url ?? '';
      const redirect = (to: string) => response.writeHead(302, { Location: to }).end();
      if (path === '/a') redirect('/b');
      else if (path === '/b') redirect(`/file?generation=${generation}`);
      else if (path !== `/file?generation=${generation}`) response.writeHead(403).end();
      else if (generation++ === 1) breakAfter(request, response, recording.subarray(0, MIB), partOf(recording, 0));
      else rangeServer(request, response);
    };
    const { source } = await world.inPlace('/a');
    expectSame(await readForward(source), recording);
    expect(world.requests.map(({ path }) => path)).toEqual([
      '/a',
      '/b',
      '/file?generation=1',
      '/a',
      '/b',
      '/file?generation=2',
    ]);
  });
});

describe('servers without ranges', () => {
  const sendWhole: Handler = (_request, response) => {
    response.writeHead(200, { 'Content-Length': recording.length, ETag: etag });
    response.end(recording);
  };

  it('are read in place if they send a length and a validator', async () => {
    world.handler = sendWhole;
    const { source } = await world.inPlace('/a.wav');
    expect(source.canSeek).toBe(false);
    expectSame(await readForward(source), recording);
    expect(world.requests).toHaveLength(1);
    await world.expectWhole(source, recording);
    await expect(source.read(0, 10)).rejects.toThrow('no ranges');
    expect(await world.storedKeys()).toEqual([]);
  });

  it('are requested again after a broken connection, and received bytes are skipped', async () => {
    world.handler = (request, response) => {
      if (world.requests.length < 3)
        breakAfter(request, response, recording.subarray(0, world.requests.length * MIB), {
          'Content-Length': recording.length,
          ETag: etag,
        });
      else sendWhole(request, response);
    };
    const { source } = await world.inPlace('/a.wav');
    expectSame(await readForward(source), recording);
    expect(world.requests.map(({ range }) => range)).toEqual(['bytes=0-', undefined, undefined]);
  });

  it('count as changed if the second response has another or no validator', async () => {
    for (const headers of [{ ETag: '"v2"' }, {}, { ETag: etag, 'Content-Length': recording.length - 1 }]) {
      world.requests.length = 0;
      world.handler = (request, response) => {
        if (world.requests.length === 1)
          breakAfter(request, response, recording.subarray(0, MIB), { 'Content-Length': recording.length, ETag: etag });
        else response.writeHead(200, headers).end(recording.subarray(0, recording.length - 1));
      };
      const { source } = await world.inPlace('/a.wav');
      expect(await world.readError(source)).toMatchObject({ kind: 'changed' });
      expect(world.requests).toHaveLength(2);
    }
  });

  it('are copied if they send no length or no validator', async () => {
    for (const headers of [{ ETag: etag }, { 'Content-Length': recording.length }]) {
      world.handler = (_request, response) => response.writeHead(200, headers).end(recording);
      const fetched = await world.fetch('/a.wav');
      expect(fetched).toMatchObject({ ok: true, how: 'copied' });
      if (fetched.ok) expectSame(fetched.bytes, recording);
      await world.bucket.delete(await world.storedKeys());
    }
  });

  it('are read without a range if they refuse ranges', async () => {
    for (const status of [400, 416, 501]) {
      world.handler = (request, response) => {
        if (request.headers.range) response.writeHead(status).end('no');
        else sendWhole(request, response);
      };
      const fetched = await world.fetch('/a.wav');
      expect(fetched).toMatchObject({ ok: true, how: 'in place' });
      if (fetched.ok) expectSame(fetched.bytes, recording);
    }
  });

  it('are refused before the body is read if the declared size exceeds the limit', async () => {
    world.handler = (_request, response) => {
      response.writeHead(200, { 'Content-Length': 2048 * MIB });
      response.write(new Uint8Array(10));
    };
    expect(await world.open('/a.wav')).toMatchObject(failure('too_large', /limit of 1 GiB/));
    world.handler = (_request, response) => {
      response.writeHead(206, { 'Content-Range': `bytes 0-1023/${2048 * MIB}`, ETag: etag });
      response.end(new Uint8Array(1024));
    };
    expect(await world.open('/a.wav')).toMatchObject(failure('too_large', /limit of 1 GiB/));
    expect(world.requests).toHaveLength(2);
  });
});

describe('a URL without a recording is refused', () => {
  it.each([
    [404, 'http_status', /404 \(not found\)/],
    [403, 'http_status', /403 \(access is forbidden\)/],
    [401, 'http_status', /401/],
    [410, 'http_status', /410 \(gone\)/],
    [418, 'http_status', /418/],
    [500, 'server_error', /500/],
    [429, 'server_error', /429/],
  ])('status %i', async (status, kind, message) => {
    world.handler = (_request, response) => response.writeHead(status).end('no');
    expect(await world.open('/a.wav?token=secret')).toMatchObject(failure(kind, message));
    expect(world.requests).toHaveLength(kind === 'server_error' ? 4 : 1);
  });

  it('an empty file', async () => {
    world.handler = (_request, response) => response.end();
    expect(await world.fetch('/a.wav')).toMatchObject(failure('empty', /empty/));
    world.handler = (_request, response) => {
      response.flushHeaders();
      response.end();
    };
    expect(await world.fetch('/a.wav')).toMatchObject(failure('empty', /empty/));
    world.handler = (request, response) => serveRanges(request, response, { bytes: new Uint8Array(0), etag });
    expect(await world.fetch('/a.wav')).toMatchObject(failure('empty', /empty/));
    world.handler = (_request, response) => response.writeHead(204).end();
    expect(await world.fetch('/a.wav')).toMatchObject(failure('empty', /empty/));
  });

  it('a web page, but not a recording with its content type', async () => {
    const type = 'text/html; charset=utf-8';
    world.handler = (request, response) => serveRanges(request, response, { bytes: page, etag, type });
    expect(await world.fetch('/a.wav')).toMatchObject(failure('web_page', /web page/));
    world.handler = async (_request, response) => {
      response.setHeader('Content-Type', type).write(page.subarray(0, 3));
      await new Promise((done) => setTimeout(done, 20));
      response.end(page.subarray(3));
    };
    expect(await world.fetch('/a.wav')).toMatchObject(failure('web_page', /web page/));
    world.handler = (request, response) => serveRanges(request, response, { bytes: recording, etag, type });
    const fetched = await world.fetch('/a.wav');
    expect(fetched).toMatchObject({ ok: true });
    if (fetched.ok) expectSame(fetched.bytes, recording);
  });

  it('a radio stream, but not a file of the same server', async () => {
    for (const status of [200, 206]) {
      world.handler = (request, response) => {
        const isPart = status === 206 && request.headers.range !== undefined;
        const range = isPart ? { 'Content-Range': 'bytes 0-*/*' } : {};
        response.writeHead(isPart ? 206 : 200, { 'Content-Type': 'audio/mpeg', 'icy-name': 'Radio', ...range });
        response.write(recording.subarray(0, 5000));
      };
      expect(await world.open('/live')).toMatchObject(failure('endless', /radio stream, .* record a part/));
    }
    world.handler = (_request, response) => {
      response.writeHead(200, { 'icy-name': 'Radio', 'Content-Length': recording.length });
      response.end(recording);
    };
    expect(await world.fetch('/file.mp3')).toMatchObject({ ok: true });
  });

  it('a server that cannot be reached', async () => {
    const gone = await startServer(() => {});
    await gone.close();
    const opened = await world.sources().open(`${gone.origin}/a.wav?token=secret`, MAX_BYTES);
    expect(opened).toMatchObject(failure('unreachable', /could not be reached/));
    expect(JSON.stringify(opened)).not.toContain('secret');
  });

  it('a server that does not answer, after one request', async () => {
    world.handler = () => {};
    const opened = await world.open('/a.wav', { headersTimeoutMs: 40 });
    expect(opened).toMatchObject(failure('timeout', /in time/));
    expect(world.requests).toHaveLength(1);
  });
});

describe('redirects', () => {
  const redirectTo =
    (location: string, status = 302): Handler =>
    (_request, response) =>
      response.writeHead(status, { Location: location }).end();

  it('are followed at most twice', async () => {
    world.handler = redirectTo('/a.wav');
    expect(await world.open('/a.wav')).toMatchObject(failure('too_many_redirects', /more than 2/));
    expect(world.requests).toHaveLength(3);
  });

  it.each([
    'http://10.0.0.1/',
    'http://169.254.169.254/latest/',
    '//[::ffff:192.168.0.1]/x',
    'http://metadata.google.internal/',
  ])('into private networks are refused: %s', async (location) => {
    world.handler = redirectTo(location);
    expect(await world.open('/a.wav')).toMatchObject(failure('private_address', /redirect/));
    expect(world.requests).toHaveLength(1);
  });

  it('into private networks are refused during a read, too', async () => {
    world.handler = (request, response) => {
      if (startOf(request) > 0) redirectTo('http://10.0.0.1/')(request, response);
      else breakAfter(request, response, recording.subarray(0, MIB), partOf(recording, 0));
    };
    expect(await world.fetch('/a.wav')).toMatchObject(failure('private_address', /redirect/));
    expect(world.requests).toHaveLength(2);
  });

  it.each(['file:///etc/passwd', 'data:,x', 'http://user:pass@example.com/', 'http://[bad'])(
    'to %s are refused',
    async (location) => {
      world.handler = redirectTo(location, 307);
      expect(await world.open('/a.wav')).toMatchObject({ ok: false, error: { kind: 'invalid_url' } });
    },
  );
});

describe('addresses', () => {
  it('in private networks, and in loopback unless it is allowed, are not requested', async () => {
    world.handler = rangeServer;
    const closed = world.sources({ allowLoopback: false });
    expect(await closed.open(`${world.origin}/a.wav`, MAX_BYTES)).toMatchObject(failure('private_address', /private/));
    expect(await world.sources().open('http://10.1.2.3/a.wav', MAX_BYTES)).toMatchObject(
      failure('private_address', /private/),
    );
    expect(await world.sources().open('ftp://example.com/a', MAX_BYTES)).toMatchObject(failure('invalid_url', /http/));
    expect(world.requests).toEqual([]);
  });

  it('with inline data are read from memory', async () => {
    const body = recording.subarray(0, 100_001);
    const forms = [
      `data:audio/wav;base64,${Buffer.from(body).toString('base64')}`,
      `data:;base64,${Buffer.from(body).toString('base64url')}`,
      `DATA:audio/wav;BASE64,${encodeURIComponent(Buffer.from(body).toString('base64'))}`,
      `data:audio/wav,${[...body.subarray(0, 3000)].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('')}`,
    ];
    for (const [i, url] of forms.entries()) {
      const opened = await world.sources().open(url, MAX_BYTES);
      if (!opened.ok || opened.value === 'copy') throw new Error(JSON.stringify(opened));
      await world.expectWhole(opened.value.source, i === 3 ? body.subarray(0, 3000) : body);
    }
    expect(await world.storedKeys()).toEqual([]);
  });

  it('with invalid data are refused', async () => {
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
      expect(await world.sources().open(url, MAX_BYTES)).toMatchObject({ ok: false, error: { kind } });
    }
  });
});
