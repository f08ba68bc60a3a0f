import type { IncomingMessage, ServerResponse } from 'node:http';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import type { Miniflare } from '../../client/local/miniflare.ts';
import { serveRanges, startServer, type TestServer } from '../helpers/http-server.ts';
import { wav16 } from '../helpers/wav.ts';
import { startTestWorker } from '../helpers/workerd.ts';

/** Sources in the runtime that they are made for: its `fetch`, its streams and its R2 differ from those of Node. */
const MIB = 1024 * 1024;
const signal = Float32Array.from({ length: 7_000_000 }, (_, i) => ((i * 7919) % 2001) / 4000);
const recording = wav16(signal, 16000);
const expectedSum = signal.reduce((sum, value) => sum + Math.abs(Math.round(value * 32768)) / 32768, 0);
const etag = '"v1"';

let workerd: Miniflare;
let server: TestServer;
let handler: (request: IncomingMessage, response: ServerResponse) => void;

beforeAll(async () => {
  workerd = await startTestWorker('sources', { r2Buckets: ['BUCKET'] });
  server = await startServer((request, response) => handler(request, response));
});

afterAll(async () => {
  await server?.close();
  await workerd?.dispose();
});

beforeEach(async () => {
  server.requests.length = 0;
  const stored = await objects();
  await (await workerd.getR2Bucket('BUCKET')).delete(stored);
});

async function ask(
  url: string,
  { maxBytes = 1024 * MIB, timeoutMs = 5000, loseCopy = false } = {},
): Promise<Record<string, unknown>> {
  const response = await workerd.dispatchFetch('http://workerd/', {
    method: 'POST',
    body: JSON.stringify({ url, maxBytes, timeoutMs, loseCopy }),
  });
  if (response.status !== 200) throw new Error(await response.text());
  return (await response.json()) as Record<string, unknown>;
}

const objects = async () => (await (await workerd.getR2Bucket('BUCKET')).list()).objects.map(({ key }) => key);

function expectWhole(answer: Record<string, unknown>, kind: string): void {
  expect(answer).toMatchObject({ ref: { kind, sizeBytes: recording.length }, count: signal.length });
  expect(answer.sum).toBeCloseTo(expectedSum, 3);
}

it('reads ranges in place', async () => {
  handler = (request, response) => serveRanges(request, response, { bytes: recording, etag });
  expectWhole(await ask(`${server.origin}/a.wav`), 'http');
  expect(await objects()).toEqual([]);
});

it('reads on over connections that break', async () => {
  let count = 0;
  handler = (request, response) => {
    if (++count % 3 === 0) {
      response.writeHead(206, { 'Content-Length': MIB });
      response.write(recording.subarray(0, 1000), () => request.socket.destroy());
    } else {
      serveRanges(request, response, { bytes: recording, etag });
    }
  };
  expectWhole(await ask(`${server.origin}/a.wav`), 'http');
});

it('copies into R2 where there are no ranges, in parts', async () => {
  handler = (_request, response) => response.end(recording);
  expectWhole(await ask(`${server.origin}/a.wav`), 'object');
  expect(await objects()).toEqual([expect.stringMatching(/^spool\/job-/)]);
  server.requests.length = 0;
  expectWhole(await ask(`${server.origin}/a.wav`), 'object');
  expect(server.requests).toEqual([]);
});

it('stores data: URLs', async () => {
  const small = wav16(signal.subarray(0, 1000), 16000);
  const answer = await ask(`data:audio/wav;base64,${Buffer.from(small).toString('base64')}`);
  expect(answer).toMatchObject({ ref: { kind: 'object', sizeBytes: small.length }, count: 1000 });
});

it('refuses what it should, and leaves nothing behind', async () => {
  handler = (request, response) => serveRanges(request, response, { bytes: recording, etag });
  expect(await ask(`${server.origin}/a`, { maxBytes: MIB })).toMatchObject({ error: { kind: 'too_large' } });
  handler = (_request, response) => response.end(recording);
  expect(await ask(`${server.origin}/a`, { maxBytes: MIB })).toMatchObject({ error: { kind: 'too_large' } });
  handler = (_request, response) => {
    const timer = setInterval(() => response.write(recording.subarray(0, MIB)), 5);
    response.on('close', () => clearInterval(timer));
  };
  expect(await ask(`${server.origin}/a`, { maxBytes: 9 * MIB })).toMatchObject({ error: { kind: 'too_large' } });
  handler = (_request, response) => response.writeHead(302, { Location: 'http://192.168.1.1/' }).end();
  expect(await ask(`${server.origin}/a`)).toMatchObject({ error: { kind: 'private_address' } });
  handler = (_request, response) => response.writeHead(302, { Location: '/a' }).end();
  expect(await ask(`${server.origin}/a`)).toMatchObject({ error: { kind: 'too_many_redirects' } });
  handler = (_request, response) => response.writeHead(404).end();
  expect(await ask(`${server.origin}/a`)).toMatchObject({ error: { kind: 'http_status' } });
  handler = (_request, response) => response.end();
  expect(await ask(`${server.origin}/a`)).toMatchObject({ error: { kind: 'empty' } });
  handler = (_request, response) => response.setHeader('Content-Type', 'text/html').end('<html><body>Hi</body></html>');
  expect(await ask(`${server.origin}/a`)).toMatchObject({ error: { kind: 'web_page' } });
  expect(await objects()).toEqual([]);
});

it('does not wait for ever', async () => {
  handler = () => {};
  expect(await ask(`${server.origin}/a`, { timeoutMs: 50 })).toMatchObject({ error: { kind: 'timeout' } });
  handler = (_request, response) => response.write(recording.subarray(0, 100_000));
  expect(await ask(`${server.origin}/a`, { timeoutMs: 100 })).toMatchObject({ error: { kind: 'timeout' } });
  handler = (request) => request.socket.destroy();
  expect(await ask(`${server.origin}/a`)).toMatchObject({ error: { kind: 'unreachable' } });
  expect(await objects()).toEqual([]);
});

it('says when the recording changes while it is read', async () => {
  let count = 0;
  handler = (request, response) =>
    serveRanges(request, response, { bytes: recording, etag: ++count > 3 ? '"v2"' : etag });
  expect(await ask(`${server.origin}/a.wav`)).toMatchObject({ ref: { kind: 'http' }, error: { kind: 'changed' } });
});

it('says that a copy is gone, also when its source is closed afterwards', async () => {
  handler = (_request, response) => response.writeHead(200, { 'Content-Length': recording.length }).end(recording);
  const { error } = await ask(`${server.origin}/a.wav`, { loseCopy: true });
  expect(error).toMatchObject({ kind: 'changed' });
});
