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

async function request(options: OriginOptions, headers: Record<string, string> = {}): Promise<Response> {
  origin = await serveOrigin(path, options);
  return fetch(origin.url, { headers });
}

/** Number of bytes before the connection ends or breaks. */
async function received({ body }: Response): Promise<number> {
  let bytes = 0;
  try {
    for await (const part of body!) bytes += part.length;
  } catch {
    // Cut off.
  }
  return bytes;
}

it('serves ranges with a validator and a length', async () => {
  const answer = await request({}, { Range: 'bytes=10-19' });
  expect([answer.status, answer.headers.get('Content-Range')]).toEqual([206, `bytes 10-19/${SIZE}`]);
  expect(answer.headers.get('ETag')).not.toBeNull();
  expect(await received(answer)).toBe(10);
});

it.each([
  ['no ranges', { hasRanges: false }, 200, String(SIZE), true],
  ['no validator', { hasValidator: false }, 206, String(SIZE), false],
  ['no length', { hasLength: false }, 200, null, true],
] as const)('serves %s', async (_name, options, status, length, hasTag) => {
  const answer = await request(options, { Range: 'bytes=0-' });
  expect(answer.status).toBe(status);
  expect(answer.headers.get('Content-Length')).toBe(length);
  expect(answer.headers.has('ETag')).toBe(hasTag);
  expect(await received(answer)).toBe(SIZE);
});

it('closes a connection after the given number of bytes, all of which arrive', async () => {
  expect(await received(await request({ cutEveryBytes: 1_000_000 }))).toBe(1_000_000);
});

it('serves another file after half of the first one', async () => {
  const first = await request({ changesTo: other });
  expect(await received(first)).toBeLessThan(SIZE);
  const second = await fetch(origin!.url, { headers: { Range: 'bytes=5-', 'If-Range': first.headers.get('ETag')! } });
  expect(second.status).toBe(200);
  const bytes = new Uint8Array(await second.arrayBuffer());
  expect([bytes.length, bytes[0]]).toEqual([SIZE, 2]);
  expect(origin!.requests()).toBe(2);
});

it('repeats the file endlessly', async () => {
  const { body } = await request({ isEndless: true });
  let bytes = 0;
  for await (const part of body!) {
    bytes += part.length;
    if (bytes > 2 * SIZE) break;
  }
  expect(bytes).toBeGreaterThan(2 * SIZE);
});

it('limits the bytes per second', async () => {
  const { body } = await request({ bytesPerSecond: 100_000 });
  const from = performance.now();
  let bytes = 0;
  for await (const part of body!) {
    bytes += part.length;
    if (performance.now() - from > 500) break;
  }
  expect(bytes).toBeLessThan(150_000);
});
