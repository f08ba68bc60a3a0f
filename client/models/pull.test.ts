import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ModelFile } from '../../src/platform/onnx/manifest.ts';
import { startServer, type TestServer } from '../../test/helpers/http-server.ts';
import { helloTarBz2 } from './bunzip2.fixture.ts';
import { pullFile } from './pull.ts';

const weights = Uint8Array.from({ length: 300_000 }, (_, index) => (index * 7919) % 251);
const hello = new TextEncoder().encode('hello, who spoke when?\n'.repeat(40));
const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

const plain: ModelFile = {
  path: 'studio/weights.onnx',
  bytes: weights.length,
  sha256: sha256(weights),
  origin: { url: 'https://models.example/pub/weights.onnx', bytes: weights.length, sha256: sha256(weights) },
};
const packed: ModelFile = {
  path: 'studio/hello.txt',
  bytes: hello.length,
  sha256: sha256(hello),
  origin: {
    url: 'https://models.example/pub/hello.tar.bz2',
    bytes: helloTarBz2.length,
    sha256: sha256(helloTarBz2),
    member: 'pack/hello.txt',
  },
};

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

let root: string;
let server: TestServer;
let mirror: string;
let handler: Handler;

beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), 'rollcall-pull-'));
  handler = (_, response) => response.end(weights);
  server = await startServer((request, response) => handler(request, response));
  mirror = `${server.origin}/`;
});

afterEach(async () => {
  await server.close();
  rmSync(root, { recursive: true, force: true });
});

const folder = (): string[] =>
  existsSync(join(root, 'models/studio')) ? readdirSync(join(root, 'models/studio')) : [];

describe('pullFile', () => {
  it('downloads a file from its path at the mirror', async () => {
    const progress: number[] = [];
    const outcome = await pullFile(plain, { root, mirror, onProgress: (received) => progress.push(received) });
    expect(outcome).toEqual({ kind: 'pulled' });
    expect(server.requests).toEqual([{ path: '/models.example/pub/weights.onnx', range: undefined }]);
    expect(new Uint8Array(readFileSync(join(root, 'models', plain.path)))).toEqual(weights);
    expect(folder()).toEqual(['weights.onnx']);
    expect(progress.at(-1)).toBe(weights.length);
  });

  it('does not download a file that is present', async () => {
    await pullFile(plain, { root, mirror });
    expect(await pullFile(plain, { root, mirror })).toEqual({ kind: 'present' });
    expect(server.requests).toHaveLength(1);
  });

  it('follows redirects', async () => {
    handler = (request, response) => {
      if (request.url === '/cdn') response.end(weights);
      else response.writeHead(302, { Location: '/cdn' }).end();
    };
    expect(await pullFile(plain, { root, mirror })).toEqual({ kind: 'pulled' });
  });

  it('extracts a member of a .tar.bz2 and removes the archive', async () => {
    handler = (_, response) => response.end(helloTarBz2);
    expect(await pullFile(packed, { root, mirror })).toEqual({ kind: 'pulled' });
    expect(new Uint8Array(readFileSync(join(root, 'models', packed.path)))).toEqual(hello);
    expect(folder()).toEqual(['hello.txt']);
  });

  it('resumes a download that broke off', async () => {
    handler = (_, response) => {
      response.writeHead(200, { 'Content-Length': weights.length });
      response.write(weights.subarray(0, 100_000));
      setTimeout(() => response.destroy(), 300); // after the bytes have arrived
    };
    const broken = await pullFile(plain, { root, mirror });
    expect(broken).toMatchObject({ kind: 'unreachable', message: expect.stringContaining('to resume') });
    expect(existsSync(join(root, 'models', plain.path))).toBe(false);

    handler = (request, response) => {
      const start = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? '')?.[1]);
      response.writeHead(206, { 'Content-Range': `bytes ${start}-${weights.length - 1}/${weights.length}` });
      response.end(weights.subarray(start));
    };
    expect(await pullFile(plain, { root, mirror })).toEqual({ kind: 'pulled' });
    expect(server.requests[1].range).toMatch(/^bytes=[1-9]\d*-$/);
    expect(folder()).toEqual(['weights.onnx']);
  });

  it('refuses a concurrent download and takes over the lock of a killed command', async () => {
    let answer: (() => void) | undefined;
    handler = (_, response) => {
      answer = () => response.end(weights);
    };
    const first = pullFile(plain, { root, mirror });
    while (!answer) await new Promise((wake) => setTimeout(wake, 5));
    expect(await pullFile(plain, { root, mirror })).toMatchObject({ kind: 'busy' });
    answer();
    expect(await first).toEqual({ kind: 'pulled' });
    expect(folder()).toEqual(['weights.onnx']);

    rmSync(join(root, 'models', plain.path));
    writeFileSync(join(root, 'models', `${plain.path}.part.lock`), '999999999');
    handler = (_, response) => response.end(weights);
    expect(await pullFile(plain, { root, mirror })).toEqual({ kind: 'pulled' });
    expect(folder()).toEqual(['weights.onnx']);
  });

  it('starts again if the server does not support ranges', async () => {
    await pullFile({ ...plain, path: 'studio/other.onnx' }, { root, mirror });
    writeFileSync(join(root, 'models/studio/weights.onnx.part'), weights.subarray(0, 5));
    expect(await pullFile(plain, { root, mirror })).toEqual({ kind: 'pulled' });
    expect(server.requests.slice(1).map(({ range }) => range)).toEqual(['bytes=5-', undefined]);
  });

  it('refuses and removes a file with a wrong hash', async () => {
    const changed = weights.slice();
    changed[123_456] ^= 1;
    handler = (_, response) => response.end(changed);
    const outcome = await pullFile(plain, { root, mirror });
    expect(outcome).toMatchObject({ kind: 'wrong_hash', message: expect.stringContaining(sha256(changed)) });
    expect(folder()).toEqual([]);
  });

  it('refuses a damaged part file and then starts again', async () => {
    await pullFile({ ...plain, path: 'studio/other.onnx' }, { root, mirror });
    writeFileSync(join(root, 'models/studio/weights.onnx.part'), new Uint8Array(weights.length));
    expect(await pullFile(plain, { root, mirror })).toMatchObject({ kind: 'wrong_hash' });
    expect(await pullFile(plain, { root, mirror })).toEqual({ kind: 'pulled' });
  });

  it.each([
    ['longer', new Uint8Array(weights.length + 1)],
    ['shorter', weights.subarray(0, 10)],
  ])('refuses a download that is %s than the pinned size', async (_, body) => {
    handler = (__, response) => response.end(body);
    expect(await pullFile(plain, { root, mirror })).toMatchObject({ kind: 'wrong_size' });
    expect(folder()).toEqual([]);
  });

  it('refuses an archive whose member is missing or has a wrong hash', async () => {
    handler = (_, response) => response.end(helloTarBz2);
    const origin = packed.origin;
    const absent = { ...packed, origin: origin && { ...origin, member: 'pack/none.txt' } };
    expect(await pullFile(absent, { root, mirror })).toMatchObject({ kind: 'no_member' });
    const other = { ...packed, sha256: sha256(weights) };
    expect(await pullFile(other, { root, mirror })).toMatchObject({ kind: 'wrong_hash' });
    expect(folder()).toEqual([]);
  });

  it('reports an address that does not answer or does not have the file', async () => {
    handler = (_, response) => response.writeHead(404).end('no');
    expect(await pullFile(plain, { root, mirror })).toMatchObject({
      kind: 'refused',
      message: expect.stringContaining('404'),
    });
    const closed = await pullFile(plain, { root, mirror: 'http://127.0.0.1:1' });
    expect(closed).toMatchObject({ kind: 'unreachable' });
  });

  it('does not download files of the repository', async () => {
    expect(await pullFile({ ...plain, origin: undefined }, { root, mirror })).toMatchObject({ kind: 'no_origin' });
    expect(server.requests).toEqual([]);
  });
});
