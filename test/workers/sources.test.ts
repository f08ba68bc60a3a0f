import type { IncomingMessage, ServerResponse } from 'node:http';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, vi } from 'vitest';
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
const underWay = new Set<ServerResponse>();
/** Each request's. */
let directives: (string | undefined)[] = [];

beforeAll(async () => {
  workerd = await startTestWorker('sources', { r2Buckets: ['BUCKET'] });
  server = await startServer((request, response) => {
    underWay.add(response);
    directives.push(request.headers['cache-control']);
    response.on('close', () => underWay.delete(response));
    handler(request, response);
  });
});

afterAll(async () => {
  await server?.close();
  await workerd?.dispose();
});

beforeEach(async () => {
  server.requests.length = 0;
  directives = [];
  const stored = await objects();
  await (await workerd.getR2Bucket('BUCKET')).delete(stored);
});

/** All answers were read to their ends or let go. */
afterEach(() => vi.waitFor(() => expect(underWay.size).toBe(0), 5000));

const DEFAULTS = { maxBytes: 1024 * MIB, timeoutMs: 5000, copyMs: 60_000, loseCopy: false, stopsEarly: false };

async function ask(url: string, changes: Partial<typeof DEFAULTS> = {}): Promise<Record<string, unknown>> {
  const response = await workerd.dispatchFetch('http://workerd/', {
    method: 'POST',
    body: JSON.stringify({ url, ...DEFAULTS, ...changes }),
  });
  if (response.status !== 200) throw new Error(await response.text());
  return (await response.json()) as Record<string, unknown>;
}

const objects = async () => (await (await workerd.getR2Bucket('BUCKET')).list()).objects.map(({ key }) => key);

function expectWhole(answer: Record<string, unknown>, how: string): void {
  expect(answer).toMatchObject({ how, sizeBytes: recording.length, count: signal.length });
  expect(answer.sum).toBeCloseTo(expectedSum, 3);
}

const startOf = ({ headers }: IncomingMessage) => Number(/^bytes=(\d+)-/.exec(headers.range ?? '')?.[1] ?? 0);

/** Gives so many bytes of the rest that was asked for, and breaks the connection. */
function breakAfter(request: IncomingMessage, response: ServerResponse, bytes: number): void {
  const start = startOf(request);
  response.writeHead(206, {
    'Content-Range': `bytes ${start}-${recording.length - 1}/${recording.length}`,
    'Content-Length': recording.length - start,
    ETag: etag,
  });
  response.write(recording.subarray(start, start + bytes), () => setTimeout(() => request.socket.destroy(), 5));
}

it('reads forward in place, over one connection', async () => {
  handler = (request, response) => serveRanges(request, response, { bytes: recording, etag });
  expectWhole(await ask(`${server.origin}/a.wav`), 'in place');
  expect(server.requests.map(({ range }) => range)).toEqual(['bytes=0-']);
  expect(directives, 'as the runtime says that nothing may be cached').toEqual(['no-cache']);
  expect(await objects()).toEqual([]);
});

it('reads on over connections that break', async () => {
  handler = (request, response) => breakAfter(request, response, server.requests.length === 1 ? 5 * MIB : 3 * MIB);
  expectWhole(await ask(`${server.origin}/a.wav`), 'in place');
  expect(server.requests.length).toBeGreaterThan(3);
});

it('gives up on connections that break after every few bytes', async () => {
  handler = (request, response) => breakAfter(request, response, 1000);
  expect(await ask(`${server.origin}/a.wav`)).toMatchObject({ error: { kind: 'unreachable' } });
  expect(server.requests).toHaveLength(4);
});

it('reads in place without ranges, and passes over what has come where the connection breaks', async () => {
  const headers = { 'Content-Length': recording.length, ETag: etag };
  handler = (request, response) => {
    response.writeHead(200, headers);
    if (server.requests.length > 1) response.end(recording);
    else response.write(recording.subarray(0, 5 * MIB), () => setTimeout(() => request.socket.destroy(), 5));
  };
  expectWhole(await ask(`${server.origin}/a.wav`), 'in place');
  expect(server.requests).toHaveLength(2);
});

it('lets go of a recording of which it reads no more', async () => {
  handler = (request, response) => serveRanges(request, response, { bytes: recording, etag });
  expect(await ask(`${server.origin}/a.wav`, { stopsEarly: true })).toMatchObject({ how: 'in place' });
  expect(server.requests).toHaveLength(1);
});

it('copies into R2 where nothing pins the file, in parts', async () => {
  handler = (_request, response) => response.end(recording);
  expectWhole(await ask(`${server.origin}/a.wav`), 'copied');
  expect(await objects()).toEqual(['work/job/source']);
});

it('reads data: URLs from memory', async () => {
  const small = wav16(signal.subarray(0, 1000), 16000);
  const answer = await ask(`data:audio/wav;base64,${Buffer.from(small).toString('base64')}`);
  expect(answer).toMatchObject({ sizeBytes: small.length, count: 1000 });
  expect(await objects()).toEqual([]);
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

it('does not wait forever', async () => {
  handler = () => {};
  expect(await ask(`${server.origin}/a`, { timeoutMs: 50 })).toMatchObject({ error: { kind: 'timeout' } });
  handler = (_request, response) => response.write(recording.subarray(0, 100_000));
  expect(await ask(`${server.origin}/a`, { timeoutMs: 100 })).toMatchObject({ error: { kind: 'timeout' } });
  handler = (request) => request.socket.destroy();
  expect(await ask(`${server.origin}/a`)).toMatchObject({ error: { kind: 'unreachable' } });
  expect(await objects()).toEqual([]);
});

it('says when the recording changes while it is read', async () => {
  handler = (request, response) => {
    if (server.requests.length === 1) breakAfter(request, response, 5 * MIB);
    else serveRanges(request, response, { bytes: recording, etag: '"v2"' });
  };
  expect(await ask(`${server.origin}/a.wav`)).toMatchObject({ how: 'in place', error: { kind: 'changed' } });
});

it('reads a copy to its end that is deleted meanwhile, or says that it is gone', async () => {
  handler = (_request, response) => response.writeHead(200, { 'Content-Length': recording.length }).end(recording);
  const answer = await ask(`${server.origin}/a.wav`, { loseCopy: true });
  if ('error' in answer) expect(answer.error).toMatchObject({ kind: 'changed' });
  else expectWhole(answer, 'copied');
});
