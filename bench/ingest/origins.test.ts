import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { type Origin, type OriginOptions, serveOrigin } from './origins.ts';

const SIZE = 3_000_000;
let folder: string;
let path: string;
let other: string;
let origin: Origin | undefined;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'rollcall-origins-'));
  [path, other] = [join(folder, 'one'), join(folder, 'other')];
  writeFileSync(path, Buffer.alloc(SIZE, 1));
  writeFileSync(other, Buffer.alloc(SIZE, 2));
});
afterEach(async () => origin?.close());
afterAll(() => rmSync(folder, { recursive: true }));

async function ask(options: OriginOptions, headers: Record<string, string> = {}): Promise<Response> {
  origin = await serveOrigin(path, options);
  return fetch(origin.url, { headers });
}

/** Bytes that come before the connection ends, however it does. */
async function received({ body }: Response): Promise<number> {
  let bytes = 0;
  try {
    for await (const part of body!) bytes += part.length;
  } catch {
    // Cut off.
  }
  return bytes;
}

it('gives ranges, a validator and a length', async () => {
  const answer = await ask({}, { Range: 'bytes=10-19' });
  expect([answer.status, answer.headers.get('Content-Range')]).toEqual([206, `bytes 10-19/${SIZE}`]);
  expect(answer.headers.get('ETag')).not.toBeNull();
  expect(await received(answer)).toBe(10);
});

it.each([
  ['no ranges', { hasRanges: false }, 200, String(SIZE), true],
  ['no validator', { hasValidator: false }, 206, String(SIZE), false],
  ['no length', { hasLength: false }, 200, null, true],
] as const)('%s', async (_name, options, status, length, hasTag) => {
  const answer = await ask(options, { Range: 'bytes=0-' });
  expect(answer.status).toBe(status);
  expect(answer.headers.get('Content-Length')).toBe(length);
  expect(answer.headers.has('ETag')).toBe(hasTag);
  expect(await received(answer)).toBe(SIZE);
});

it('closes a connection after so many bytes, all of which arrive', async () => {
  expect(await received(await ask({ cutEveryBytes: 1_000_000 }))).toBe(1_000_000);
});

it('has another file from half-way on', async () => {
  const first = await ask({ changesTo: other });
  expect(await received(first)).toBeLessThan(SIZE);
  const second = await fetch(origin!.url, { headers: { Range: 'bytes=5-', 'If-Range': first.headers.get('ETag')! } });
  expect(second.status).toBe(200);
  const bytes = new Uint8Array(await second.arrayBuffer());
  expect([bytes.length, bytes[0]]).toEqual([SIZE, 2]);
  expect(origin!.requests()).toBe(2);
});

it('never ends', async () => {
  const { body } = await ask({ isEndless: true });
  let bytes = 0;
  for await (const part of body!) {
    bytes += part.length;
    if (bytes > 2 * SIZE) break;
  }
  expect(bytes).toBeGreaterThan(2 * SIZE);
});

it('is slow', async () => {
  const { body } = await ask({ bytesPerSecond: 100_000 });
  const from = performance.now();
  let bytes = 0;
  for await (const part of body!) {
    bytes += part.length;
    if (performance.now() - from > 500) break;
  }
  expect(bytes).toBeLessThan(150_000);
});
