import type { IncomingMessage, ServerResponse } from 'node:http';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, vi } from 'vitest';
import type { Miniflare } from '../../client/local/miniflare.ts';
import { serveRanges, startServer, type TestServer } from '../helpers/http-server.ts';
import { wav16 } from '../helpers/wav.ts';
import { startTestWorker } from '../helpers/workerd.ts';

/** Tests sources in workerd, because its `fetch`, streams and R2 differ from those of Node. */
const MIB = 1024 * 1024;
const signal = Float32Array.from({ length: 7_000_000 }, (_, i) => ((i * 7919) % 2001) / 4000);
const recording = wav16(signal, 16000);
const expectedSum = signal.reduce((sum, value) => sum + Math.abs(Math.round(value * 32768)) / 32768, 0);
const etag = '"v1"';

let workerd: Miniflare;
let server: TestServer;
let handler: (request: IncomingMessage, response: ServerResponse) => void;
const openResponses = new Set<ServerResponse>();
/** The Cache-Control header of each request. */
let directives: (string | undefined)[] = [];

beforeAll(async () => {
  workerd = await startTestWorker('sources', { r2Buckets: ['BUCKET'] });
  server = await startServer((request, response) => {
    openResponses.add(response);
    directives.push(request.headers['cache-control']);
    response.on('close', () => openResponses.delete(response));
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

/** Every response must have been read to its end or cancelled. */
afterEach(() => vi.waitFor(() => expect(openResponses.size).toBe(0), 5000));

const DEFAULTS = { maxBytes: 1024 * MIB, timeoutMs: 5000, copyMs: 60_000, loseCopy: false, stopsEarly: false };

async function readInWorkerd(url: string, changes: Partial<typeof DEFAULTS> = {}): Promise<Record<string, unknown>> {
  const response = await workerd.dispatchFetch('http://workerd/', {
    method: 'POST',
    body: JSON.stringify({ url, ...DEFAULTS, ...changes }),
  });
  if (response.status !== 200) throw new Error(await response.text());
  return (await response.json()) as Record<string, unknown>;
}

const objects = async () => (await (await workerd.getR2Bucket('BUCKET')).list()).objects.map(({ key }) => key);

function expectComplete(answer: Record<string, unknown>, mode: string): void {
  expect(answer).toMatchObject({ mode, sizeBytes: recording.length, count: signal.length });
  expect(answer.sum).toBeCloseTo(expectedSum, 3);
}

const startOf = ({ headers }: IncomingMessage) => Number(/^bytes=(\d+)-/.exec(headers.range ?? '')?.[1] ?? 0);

/** Sends `bytes` of the requested range, then breaks the connection. */
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
  expectComplete(await readInWorkerd(`${server.origin}/a.wav`), 'in place');
  expect(server.requests.map(({ range }) => range)).toEqual(['bytes=0-']);
  expect(directives, 'workerd forbids caching').toEqual(['no-cache']);
  expect(await objects()).toEqual([]);
});

it('continues reading after broken connections', async () => {
  handler = (request, response) => breakAfter(request, response, server.requests.length === 1 ? 5 * MIB : 3 * MIB);
  expectComplete(await readInWorkerd(`${server.origin}/a.wav`), 'in place');
  expect(server.requests.length).toBeGreaterThan(3);
});

it('gives up when four connections in a row break early', async () => {
  handler = (request, response) => breakAfter(request, response, 1000);
  expect(await readInWorkerd(`${server.origin}/a.wav`)).toMatchObject({ error: { kind: 'unreachable' } });
  expect(server.requests).toHaveLength(4);
});

it('reads in place without ranges, and skips received bytes after a broken connection', async () => {
  const headers = { 'Content-Length': recording.length, ETag: etag };
  handler = (request, response) => {
    response.writeHead(200, headers);
    if (server.requests.length > 1) response.end(recording);
    else response.write(recording.subarray(0, 5 * MIB), () => setTimeout(() => request.socket.destroy(), 5));
  };
  expectComplete(await readInWorkerd(`${server.origin}/a.wav`), 'in place');
  expect(server.requests).toHaveLength(2);
});

it('cancels the response when reading stops early', async () => {
  handler = (request, response) => serveRanges(request, response, { bytes: recording, etag });
  expect(await readInWorkerd(`${server.origin}/a.wav`, { stopsEarly: true })).toMatchObject({ mode: 'in place' });
  expect(server.requests).toHaveLength(1);
});

it('copies a recording without a validator into R2', async () => {
  handler = (_request, response) => response.end(recording);
  expectComplete(await readInWorkerd(`${server.origin}/a.wav`), 'copied');
  expect(await objects()).toEqual(['work/job/source']);
});

it('reads data: URLs from memory', async () => {
  const small = wav16(signal.subarray(0, 1000), 16000);
  const answer = await readInWorkerd(`data:audio/wav;base64,${Buffer.from(small).toString('base64')}`);
  expect(answer).toMatchObject({ sizeBytes: small.length, count: 1000 });
  expect(await objects()).toEqual([]);
});

it('refuses invalid sources and stores nothing', async () => {
  handler = (request, response) => serveRanges(request, response, { bytes: recording, etag });
  expect(await readInWorkerd(`${server.origin}/a`, { maxBytes: MIB })).toMatchObject({ error: { kind: 'too_large' } });
  handler = (_request, response) => response.end(recording);
  expect(await readInWorkerd(`${server.origin}/a`, { maxBytes: MIB })).toMatchObject({ error: { kind: 'too_large' } });
  handler = (_request, response) => {
    const timer = setInterval(() => response.write(recording.subarray(0, MIB)), 5);
    response.on('close', () => clearInterval(timer));
  };
  expect(await readInWorkerd(`${server.origin}/a`, { maxBytes: 9 * MIB })).toMatchObject({
    error: { kind: 'too_large' },
  });
  handler = (_request, response) => response.writeHead(302, { Location: 'http://192.168.1.1/' }).end();
  expect(await readInWorkerd(`${server.origin}/a`)).toMatchObject({ error: { kind: 'private_address' } });
  handler = (_request, response) => response.writeHead(302, { Location: '/a' }).end();
  expect(await readInWorkerd(`${server.origin}/a`)).toMatchObject({ error: { kind: 'too_many_redirects' } });
  handler = (_request, response) => response.writeHead(404).end();
  expect(await readInWorkerd(`${server.origin}/a`)).toMatchObject({ error: { kind: 'http_status' } });
  handler = (_request, response) => response.end();
  expect(await readInWorkerd(`${server.origin}/a`)).toMatchObject({ error: { kind: 'empty' } });
  handler = (_request, response) => response.setHeader('Content-Type', 'text/html').end('<html><body>Hi</body></html>');
  expect(await readInWorkerd(`${server.origin}/a`)).toMatchObject({ error: { kind: 'web_page' } });
  expect(await objects()).toEqual([]);
});

it('times out on servers that stall', async () => {
  handler = () => {};
  expect(await readInWorkerd(`${server.origin}/a`, { timeoutMs: 50 })).toMatchObject({ error: { kind: 'timeout' } });
  handler = (_request, response) => response.write(recording.subarray(0, 100_000));
  expect(await readInWorkerd(`${server.origin}/a`, { timeoutMs: 100 })).toMatchObject({ error: { kind: 'timeout' } });
  handler = (request) => request.socket.destroy();
  expect(await readInWorkerd(`${server.origin}/a`)).toMatchObject({ error: { kind: 'unreachable' } });
  expect(await objects()).toEqual([]);
});

it('reports a recording that changes while it is read', async () => {
  handler = (request, response) => {
    if (server.requests.length === 1) breakAfter(request, response, 5 * MIB);
    else serveRanges(request, response, { bytes: recording, etag: '"v2"' });
  };
  expect(await readInWorkerd(`${server.origin}/a.wav`)).toMatchObject({ mode: 'in place', error: { kind: 'changed' } });
});

it('reads a copy that is deleted meanwhile completely, or reports it as changed', async () => {
  handler = (_request, response) => response.writeHead(200, { 'Content-Length': recording.length }).end(recording);
  const answer = await readInWorkerd(`${server.origin}/a.wav`, { loseCopy: true });
  if ('error' in answer) expect(answer.error).toMatchObject({ kind: 'changed' });
  else expectComplete(answer, 'copied');
});
