import { appendFileSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startServer, type TestServer } from '../../test/helpers/http-server.ts';
import { RollcallClient } from '../sdk/client.ts';
import { openRecording, type Recording, uploadRecording } from './recording.ts';

const SIZE = 1_000_000;

let scratch: string;
let server: TestServer;
let receivedBytes: number;
let refusals: number;

beforeAll(async () => {
  scratch = mkdtempSync(join(tmpdir(), 'rollcall-recording-'));
  server = await startServer((request, response) => {
    if (request.method === 'POST') {
      response.writeHead(201, { 'Content-Type': 'application/json' });
      response.end(JSON.stringify({ url: `${server.origin}/upload` }));
      return;
    }
    request.on('error', () => {});
    request.on('data', (chunk: Buffer) => {
      receivedBytes += chunk.length;
    });
    if (refusals-- > 0) {
      response.writeHead(429, { 'Content-Type': 'application/json', 'Retry-After': '1' });
      response.end('{"requestId":"r","message":"Too many requests."}');
      return;
    }
    request.on('end', () => response.end('{}'));
  });
});
afterAll(async () => {
  await server.close();
  rmSync(scratch, { recursive: true, force: true });
});
beforeEach(() => {
  receivedBytes = 0;
  refusals = 0;
  writeFileSync(join(scratch, 'a.wav'), Buffer.alloc(SIZE, 1));
});

const client = () => new RollcallClient({ url: server.origin, key: 'k' });
const upload = (signal = new AbortController().signal) =>
  uploadRecording(client(), recording, (sent) => (sentBytes = sent), signal);
let recording: Recording & { kind: 'file' };
let sentBytes = 0;
beforeEach(() => {
  recording = openRecording('a.wav', scratch) as typeof recording;
});

describe('the upload of a recording', () => {
  it('sends a growing file up to its size at the start', async () => {
    appendFileSync(join(scratch, 'a.wav'), Buffer.alloc(SIZE));
    expect(await upload()).toMatchObject({ ok: true, value: expect.stringMatching(/^media:\/\/cli\//) });
    expect([receivedBytes, sentBytes]).toEqual([SIZE, SIZE]);
  });

  it('is repeated after the rate limit refused it', async () => {
    refusals = 1;
    expect(await upload()).toMatchObject({ ok: true });
    expect(refusals).toBe(-1);
    expect(sentBytes).toBe(SIZE);
  });

  it('reports a shortened or removed file as a fault of the file', async () => {
    truncateSync(join(scratch, 'a.wav'), SIZE / 2);
    await expect(upload()).rejects.toThrow('a.wav became shorter while it was uploaded.');
    rmSync(join(scratch, 'a.wav'));
    await expect(upload()).rejects.toThrow('a.wav cannot be read: no such file or directory.');
  });

  it('ends when the signal aborts', async () => {
    expect(await upload(AbortSignal.abort())).toMatchObject({ ok: false });
    expect(receivedBytes).toBeLessThan(SIZE);
  });
});
