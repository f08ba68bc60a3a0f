import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { RollcallClient } from '../../client/sdk/client.ts';
import { type RunningService, startService } from '../helpers/local-process.ts';
import { wavHeader } from '../helpers/wav.ts';

/** While a source sends as fast as it is read. */
const WATCHED_MS = 60_000;
const LONGEST_ANSWER_MS = 2000;
const ZEROS = new Uint8Array(1 << 16);
const GIBIBYTE = 1024 ** 3;
/** Of unknown length. */
const HEADER = wavHeader({ sampleRateHz: 16_000, channels: 1, tag: 1, bits: 16 }, 0xffffffff);

let stateDir: string;
let service: RunningService;
let origin: Server;

/** Sends a WAV file of silence, as fast as it is read. */
function pour(response: ServerResponse, sizeBytes: number): void {
  let left = sizeBytes;
  const more = (): void => {
    while (left > 0 && !response.destroyed) {
      const part = ZEROS.subarray(0, Math.min(left, ZEROS.length));
      left -= part.length;
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

it.each([
  ['never ends', '/endless'],
  ['has a gibibyte', '/gibibyte'],
])(
  'a source that sends as fast as it can and %s does not silence the API: it took minutes',
  { timeout: 300_000 },
  async (_name, path) => {
    const client = new RollcallClient(service);
    const url = `http://127.0.0.1:${(origin.address() as AddressInfo).port}${path}`;
    const job = await client.diarize({ url, model: 'community-1' });
    if (!job.ok) throw new Error(job.error.message);
    let slowestMs = 0;
    let answers = 0;
    for (const until = Date.now() + WATCHED_MS; Date.now() < until; answers++) {
      const from = Date.now();
      await fetch(`${service.url}/v1/test`);
      slowestMs = Math.max(slowestMs, Date.now() - from);
      await new Promise((wake) => setTimeout(wake, 250));
    }
    await client.cancel(job.value.jobId);
    console.log(`${path}: ${answers} answers, the slowest after ${slowestMs} ms`);
    expect(slowestMs).toBeLessThan(LONGEST_ANSWER_MS);
  },
);
