import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { RollcallClient } from '../../client/sdk/client.ts';
import { type RunningService, startService } from '../helpers/local-process.ts';
import { wavHeader } from '../helpers/wav.ts';

/** How long answers are measured while a source sends at full speed. */
const WATCHED_MS = 60_000;
const LONGEST_ANSWER_MS = 2000;
const ZEROS = new Uint8Array(1 << 16);
const GIBIBYTE = 1024 ** 3;
/** WAV header of unknown length. */
const HEADER = wavHeader({ sampleRateHz: 16_000, channels: 1, tag: 1, bits: 16 }, 0xffffffff);

let stateDir: string;
let service: RunningService;
let origin: Server;

/** Sends a WAV file of silence as fast as the client reads. */
function pour(response: ServerResponse, sizeBytes: number): void {
  let remainingBytes = sizeBytes;
  const more = (): void => {
    while (remainingBytes > 0 && !response.destroyed) {
      const part = ZEROS.subarray(0, Math.min(remainingBytes, ZEROS.length));
      remainingBytes -= part.length;
      if (response.write(part)) continue;
      response.once('drain', more);
      return;
    }
    response.end();
  };
  response.write(HEADER);
  more();
}

beforeAll(async () => {
  stateDir = mkdtempSync(join(tmpdir(), 'rollcall-endless-'));
  origin = createServer((request, response) => {
    if (request.url === '/endless') {
      response.writeHead(200, { 'content-type': 'audio/wav' });
      pour(response, Number.POSITIVE_INFINITY);
      return;
    }
    response.writeHead(200, { 'content-length': GIBIBYTE, etag: '"v1"' });
    pour(response, GIBIBYTE - HEADER.length);
  });
  await new Promise<void>((done) => origin.listen(0, '127.0.0.1', done));
  service = await startService(stateDir);
}, 120_000);
afterAll(async () => {
  await service?.killAll();
  origin?.closeAllConnections();
  origin?.close();
  rmSync(stateDir, { recursive: true, force: true, maxRetries: 5 });
});

/** Duration of the API's slowest answer until `running.isOver`, within WATCHED_MS. */
async function slowestAnswer(running: { isOver: boolean } = { isOver: false }): Promise<number> {
  let slowestMs = 0;
  for (const until = Date.now() + WATCHED_MS; Date.now() < until && !running.isOver; ) {
    const from = Date.now();
    await fetch(`${service.url}/v1/test`).catch((error: unknown) => {
      throw new Error(`no answer:\n${service.log()}`, { cause: error });
    });
    slowestMs = Math.max(slowestMs, Date.now() - from);
    await new Promise((wake) => setTimeout(wake, 250));
  }
  return slowestMs;
}

const address = (path: string) => `http://127.0.0.1:${(origin.address() as AddressInfo).port}${path}`;

it.each([
  ['never ends', '/endless'],
  ['sends a gibibyte', '/gibibyte'],
])(
  'the API answers within 2 s while a source sends at full speed and %s',
  { timeout: 300_000 },
  async (_name, path) => {
    const client = new RollcallClient(service);
    const job = await client.diarize({ url: address(path), model: 'community-1' });
    if (!job.ok) throw new Error(job.error.message);
    const slowestMs = await slowestAnswer();
    await client.cancel(job.value.jobId);
    console.log(`${path}: the slowest answer after ${slowestMs} ms`);
    expect(slowestMs).toBeLessThan(LONGEST_ANSWER_MS);
  },
);

it('the API answers within 2 s during an upload and a download of a gibibyte', {
  timeout: 300_000,
}, async () => {
  const json = async (path: string, url: string) => {
    const headers = { authorization: `Bearer ${service.key}`, 'content-type': 'application/json' };
    const answer = await fetch(`${service.url}${path}`, { method: 'POST', headers, body: JSON.stringify({ url }) });
    return (await answer.json()) as { url: string };
  };
  const running = { isOver: false };
  const slowest = slowestAnswer(running);
  const recording = await fetch(address('/gibibyte'));
  const { url } = await json('/v1/media/input', 'media://gibibyte.wav');
  const stored = await fetch(url, { method: 'PUT', body: recording.body, duplex: 'half' } as RequestInit);
  expect(stored.status).toBe(200);
  const download = await fetch((await json('/v1/media/output', 'media://gibibyte.wav')).url);
  expect(download.headers.get('content-length')).toBe(String(GIBIBYTE));
  let bytes = 0;
  for await (const part of download.body as ReadableStream<Uint8Array>) bytes += part.length;
  expect(bytes).toBe(GIBIBYTE);
  running.isOver = true;
  const slowestMs = await slowest;
  console.log(`upload and download: the slowest answer after ${slowestMs} ms`);
  expect(slowestMs).toBeLessThan(LONGEST_ANSWER_MS);
});
