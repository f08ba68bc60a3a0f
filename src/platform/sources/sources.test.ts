import { describe, expect, it, vi } from 'vitest';
import { serveRanges, startServer } from '../../../test/helpers/http-server.ts';
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

describe('servers with ranges', () => {
  it('are read in place, pinned by the entity tag', async () => {
    world.handler = rangeServer;
    const ref = await world.refOf('/a.wav?token=secret');
    expect(ref).toEqual({
      kind: 'http',
      url: `${world.origin}/a.wav?token=secret`,
      validator: etag,
      sizeBytes: recording.length,
    });
    await world.expectWhole(ref, recording);
    expect(await world.storedKeys()).toEqual([]);
  });

  it('may pin by the date of the last change', async () => {
    const lastModified = 'Tue, 01 Jul 2025 10:00:00 GMT';
    world.handler = (request, response) => serveRanges(request, response, { bytes: recording, lastModified });
    const ref = await world.refOf('/a.wav');
    expect(ref).toMatchObject({ kind: 'http', validator: lastModified });
    await world.expectWhole(ref, recording);
    world.handler = (request, response) =>
      serveRanges(request, response, { bytes: recording, lastModified: 'Tue, 01 Jul 2025 11:00:00 GMT' });
    expect(await world.readError(ref)).toMatchObject({ kind: 'changed' });
  });

  it('are copied when nothing pins the file, or only weakly', async () => {
    for (const weak of [undefined, 'W/"v1"']) {
      world.handler = (request, response) => serveRanges(request, response, { bytes: recording, etag: weak });
      const ref = await world.refOf('/a.wav');
      expect(ref).toEqual({ kind: 'object', key: COPY, sizeBytes: recording.length });
      await world.expectWhole(ref, recording);
      await world.bucket.delete(await world.storedKeys());
    }
  });

  it('are copied when the address will expire', async () => {
    world.handler = rangeServer;
    expect(await world.refOf('/a.wav?X-Amz-Signature=abc&X-Amz-Expires=60')).toMatchObject({ kind: 'object' });
  });

  it('are copied when they compress', async () => {
    world.handler = (request, response) => {
      if (request.headers.range) response.setHeader('Content-Encoding', 'br');
      rangeServer(request, response);
    };
    const ref = await world.refOf('/a.wav');
    expect(ref).toMatchObject({ kind: 'object', sizeBytes: recording.length });
    await world.expectWhole(ref, recording);
  });

  it('may redirect twice; what was led to is remembered, and asked for anew when it stops working', async () => {
    let generation = 1;
    world.handler = (request, response) => {
      const path = request.url ?? '';
      const redirect = (to: string) => response.writeHead(302, { Location: to }).end();
      if (path === '/a') redirect('/b');
      else if (path === '/b') redirect(`/file?generation=${generation}`);
      else if (path === `/file?generation=${generation}`) rangeServer(request, response);
      else response.writeHead(403).end();
    };
    const ref = await world.refOf('/a');
    expect(ref).toMatchObject({ kind: 'http', url: `${world.origin}/a` });
    const source = world.sources().open(ref);
    world.requests.length = 0;
    await source.read(0, 10);
    await source.read(10, 10);
    expect(world.requests.map(({ path }) => path)).toEqual(['/a', '/b', '/file?generation=1', '/file?generation=1']);
    generation = 2;
    expect(Buffer.compare(await source.read(20, 10), recording.subarray(20, 30))).toBe(0);
  });
});

describe('servers without ranges', () => {
  it('are copied into R2, in parts, bit for bit', async () => {
    const large = new Uint8Array(20 * MIB + 17).map((_, i) => (i * 31 + (i >> 12)) & 255);
    world.handler = (_request, response) => response.end(large);
    const ref = await world.refOf('/a.wav');
    expect(ref).toEqual({ kind: 'object', key: COPY, sizeBytes: large.length });
    await world.expectWhole(ref, large);
  });

  it('are copied once: a second run asks nobody', async () => {
    world.handler = (_request, response) => response.end(recording);
    const first = await world.refOf('/a.wav');
    world.requests.length = 0;
    expect(await world.refOf('/a.wav')).toEqual(first);
    expect(world.requests).toEqual([]);
  });

  it('keep the file of a run that was planned while another run copies one that has changed', async () => {
    let go = () => {};
    const later = new Promise<void>((done) => {
      go = done;
    });
    world.handler = async (_request, response) => {
      const isSecond = world.requests.length > 1;
      response.writeHead(200, { 'Content-Length': 1000 });
      if (isSecond) await later;
      response.end(new Uint8Array(1000).fill(isSecond ? 2 : 1));
    };
    const resolved = [world.resolve('/a.wav'), world.resolve('/a.wav')];
    const first = await Promise.race(resolved);
    if (!first.ok) throw new Error(first.error.message);
    go();
    expect(await Promise.all(resolved)).toMatchObject([{ ok: true }, { ok: true }]);
    expect(await world.storedKeys()).toHaveLength(2);
    await world.expectWhole(first.value, new Uint8Array(1000).fill(1));
  });

  it('may break off once or twice', async () => {
    let count = 0;
    world.handler = (request, response) => {
      response.writeHead(200, { 'Content-Length': recording.length });
      if (++count < 3) response.write(recording.subarray(0, 9000), () => request.socket.destroy());
      else response.end(recording);
    };
    await world.expectWhole(await world.refOf('/a.wav'), recording);
  });

  it('leave nothing behind when they break off for good, or stall', async () => {
    world.handler = (request, response) => {
      response.writeHead(200, { 'Content-Length': recording.length });
      response.write(recording.subarray(0, 9000), () => request.socket.destroy());
    };
    expect(await world.resolve('/a.wav')).toMatchObject(failure('unreachable', /broke off/));
    world.handler = (_request, response) => response.write(recording);
    expect(await world.resolve('/a.wav', { stallTimeoutMs: 60, backoffMs: [] })).toMatchObject(
      failure('timeout', /stopped/),
    );
    expect(await world.storedKeys()).toEqual([]);
  });

  it('are let go when they only drip: they held up everybody behind them for as long as they liked', async () => {
    world.handler = async (_request, response) => {
      while (!response.destroyed) {
        response.write(recording.subarray(0, 10));
        await new Promise((done) => setTimeout(done, 20));
      }
    };
    expect(await world.resolve('/a.wav', { stallTimeoutMs: 200, backoffMs: [] })).toMatchObject(
      failure('timeout', /less than 8 KiB a second/),
    );
    expect(await world.storedKeys()).toEqual([]);
  });

  it('are cut off at the limit, even when they never end', async () => {
    let sent = 0;
    world.handler = async (_request, response) => {
      const chunk = new Uint8Array(MIB);
      while (!response.destroyed && sent < 200) {
        sent++;
        response.write(chunk);
        while (response.writableNeedDrain && !response.destroyed) await new Promise((done) => setTimeout(done, 1));
      }
    };
    const resolved = await world.resolve('/a.wav', {}, 20 * MIB);
    expect(resolved).toMatchObject(failure('too_large', /limit of 20 MiB/));
    expect(sent).toBeLessThan(100);
    expect(await world.storedKeys()).toEqual([]);
  });

  it('are let go in time where they come too slowly: the platform would end the copy five times without a word', async () => {
    for (const isRanged of [false, true]) {
      let isOpen = true;
      world.handler = async (request, response) => {
        if (isRanged) {
          const [, from, to] = /bytes=(\d+)-(\d+)/.exec(request.headers.range ?? '') ?? [];
          const headers = {
            'Content-Range': `bytes ${from}-${to}/${500 * MIB}`,
            'Content-Length': Number(to) - Number(from) + 1,
          };
          response.writeHead(206, { ...headers, ETag: etag });
        }
        isOpen = true;
        while (!response.destroyed) {
          response.write(new Uint8Array(1024));
          await new Promise((done) => setTimeout(done, 5));
        }
        isOpen = false;
      };
      const options = { copyTimeoutMs: 300, copiesAll: true };
      expect(await world.resolve('/a.wav', options)).toMatchObject(
        failure('too_slow', /too slowly: \d\.\d MiB .*media/),
      );
      await vi.waitFor(() => expect(isOpen).toBe(false));
      expect(await world.storedKeys()).toEqual([]);
    }
  });

  it('are left to the queue where they break off late: four tries in one step took longer than the platform lets it run', async () => {
    world.handler = (request, response) => {
      response.writeHead(200, { 'Content-Length': 500 * MIB });
      response.write(new Uint8Array(1024));
      setTimeout(() => request.socket.destroy(), 60);
    };
    expect(await world.resolve('/a.wav', { copyTimeoutMs: 300 })).toMatchObject(failure('unreachable', /broke off/));
    expect(world.requests).toHaveLength(1);
    world.requests.length = 0;
    // Soon enough, or where a step has all the time that it takes, they are asked again at once.
    for (const copyTimeoutMs of [60_000, undefined]) {
      expect(await world.resolve('/a.wav', { copyTimeoutMs })).toMatchObject(failure('unreachable', /broke off/));
    }
    expect(world.requests).toHaveLength(8);
    expect(await world.storedKeys()).toEqual([]);
  });

  it('are refused by their own word before the body is read', async () => {
    world.handler = (_request, response) => {
      response.writeHead(200, { 'Content-Length': 2048 * MIB });
      response.write(new Uint8Array(10));
    };
    expect(await world.resolve('/a.wav')).toMatchObject(failure('too_large', /limit of 1 GiB/));
    world.handler = (_request, response) => {
      response.writeHead(206, { 'Content-Range': `bytes 0-1023/${2048 * MIB}`, ETag: etag });
      response.end(new Uint8Array(1024));
    };
    expect(await world.resolve('/a.wav')).toMatchObject(failure('too_large', /limit of 1 GiB/));
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
    world.handler = (_request, response) => response.writeHead(status).end('no');
    expect(await world.resolve('/a.wav?token=secret')).toMatchObject(failure(kind, message));
    expect(world.requests).toHaveLength(kind === 'server_error' ? 4 : 1);
  });

  it('an empty file', async () => {
    world.handler = (_request, response) => response.end();
    expect(await world.resolve('/a.wav')).toMatchObject(failure('empty', /empty/));
    world.handler = (_request, response) => {
      response.flushHeaders();
      response.end();
    };
    expect(await world.resolve('/a.wav')).toMatchObject(failure('empty', /empty/));
    world.handler = (request, response) => serveRanges(request, response, { bytes: new Uint8Array(0), etag });
    expect(await world.resolve('/a.wav')).toMatchObject(failure('empty', /empty/));
    world.handler = (_request, response) => response.writeHead(204).end();
    expect(await world.resolve('/a.wav')).toMatchObject(failure('empty', /empty/));
  });

  it('a web page, with ranges and without; a recording that is only called one is taken', async () => {
    const type = 'text/html; charset=utf-8';
    world.handler = (request, response) => serveRanges(request, response, { bytes: page, etag, type });
    expect(await world.resolve('/a.wav')).toMatchObject(failure('web_page', /web page/));
    world.handler = (_request, response) => response.setHeader('Content-Type', type).end(page);
    expect(await world.resolve('/a.wav')).toMatchObject(failure('web_page', /web page/));
    world.handler = (request, response) => serveRanges(request, response, { bytes: recording, etag, type });
    expect(await world.resolve('/a.wav')).toMatchObject({ ok: true });
  });

  it('a radio stream, which would be copied for hours; a file of the same server is taken', async () => {
    for (const status of [200, 206]) {
      world.handler = (request, response) => {
        const isPart = status === 206 && request.headers.range !== undefined;
        const range = isPart ? { 'Content-Range': 'bytes 0-*/*' } : {};
        response.writeHead(isPart ? 206 : 200, { 'Content-Type': 'audio/mpeg', 'icy-name': 'Radio', ...range });
        response.write(recording.subarray(0, 5000));
      };
      expect(await world.resolve('/live')).toMatchObject(failure('endless', /radio stream, .* record a part/));
    }
    world.handler = (_request, response) => {
      response.writeHead(200, { 'icy-name': 'Radio', 'Content-Length': recording.length });
      response.end(recording);
    };
    expect(await world.resolve('/file.mp3')).toMatchObject({ ok: true });
  });

  it('a server that is not there', async () => {
    const gone = await startServer(() => {});
    await gone.close();
    const resolved = await world.sources().resolve(`${gone.origin}/a.wav?token=secret`, 'spool/job', limits);
    expect(resolved).toMatchObject(failure('unreachable', /could not be reached/));
    expect(JSON.stringify(resolved)).not.toContain('secret');
  });

  it('a server that does not answer: it is asked once, as the step holds others up', async () => {
    world.handler = () => {};
    const resolved = await world.resolve('/a.wav', { headersTimeoutMs: 40 });
    expect(resolved).toMatchObject(failure('timeout', /in time/));
    expect(world.requests).toHaveLength(1);
  });
});

describe('redirects', () => {
  const redirectTo =
    (location: string, status = 302): Handler =>
    (_request, response) =>
      response.writeHead(status, { Location: location }).end();

  it('are followed twice and no more', async () => {
    world.handler = redirectTo('/a.wav');
    expect(await world.resolve('/a.wav')).toMatchObject(failure('too_many_redirects', /more than 2/));
    expect(world.requests).toHaveLength(3);
  });

  it.each([
    'http://10.0.0.1/',
    'http://169.254.169.254/latest/',
    '//[::ffff:192.168.0.1]/x',
    'http://metadata.google.internal/',
  ])('into private networks are refused: %s', async (location) => {
    world.handler = redirectTo(location);
    expect(await world.resolve('/a.wav')).toMatchObject(failure('private_address', /redirect/));
    expect(world.requests).toHaveLength(1);
  });

  it.each(['file:///etc/passwd', 'data:,x', 'http://user:pass@example.com/', 'http://[bad'])(
    'to %s are refused',
    async (location) => {
      world.handler = redirectTo(location, 307);
      expect(await world.resolve('/a.wav')).toMatchObject({ ok: false, error: { kind: 'invalid_url' } });
    },
  );
});

describe('addresses', () => {
  it('in private networks, and loopback where it is closed, are not asked', async () => {
    world.handler = rangeServer;
    const closed = world.sources({ allowLoopback: false });
    expect(await closed.resolve(`${world.origin}/a.wav`, 'spool/job', limits)).toMatchObject(
      failure('private_address', /private/),
    );
    expect(await world.sources().resolve('http://10.1.2.3/a.wav', 'spool/job', limits)).toMatchObject(
      failure('private_address', /private/),
    );
    expect(await world.sources().resolve('ftp://example.com/a', 'spool/job', limits)).toMatchObject(
      failure('invalid_url', /http/),
    );
    expect(world.requests).toEqual([]);
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
      const resolved = await world.sources().resolve(url, `spool/${i}`, limits);
      expect(resolved).toEqual({ ok: true, value: { kind: 'object', key: `spool/${i}`, sizeBytes: expected.length } });
      const bytes = await world
        .sources()
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
      expect(await world.sources().resolve(url, 'spool/job', limits)).toMatchObject({ ok: false, error: { kind } });
    }
  });
});
