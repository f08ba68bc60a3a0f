import type { IncomingMessage, ServerResponse } from 'node:http';
import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest';
import { Miniflare } from '../../client/local/miniflare.ts';
import type { SourceRef } from '../../src/jobs/ports.ts';
import { createSources, SourceReadError, type SourcesOptions } from '../../src/platform/sources/index.ts';
import { random } from './audio.ts';
import { serveRanges, startServer, type TestServer } from './http-server.ts';

export const MIB = 1024 * 1024;

const next = random(7);
/** Bytes that are longer than three blocks. */
export const recording = Uint8Array.from({ length: 3 * MIB + 12_345 }, () => Math.floor(next() * 256));

export const etag = '"v1"';

/** The key of a copy. */
export const COPY = expect.stringMatching(/^spool\/job-[0-9a-f-]{36}$/);
export const page = new TextEncoder().encode('<!DOCTYPE html>\n<html><head><title>Sign in</title></head></html>');

export type Handler = (request: IncomingMessage, response: ServerResponse) => void;

/** A static file server with ranges and a strong entity tag. */
export const rangeServer: Handler = (request, response) => serveRanges(request, response, { bytes: recording, etag });

type Options = Partial<SourcesOptions>;

/** A real HTTP server and a real R2 (Miniflare's) for the tests of one file; the bucket is emptied after each test. */
export function useSources() {
  let miniflare: Miniflare;
  let bucket: R2Bucket;
  let server: TestServer;
  const world = {
    /** What the server does; each test sets it. */
    handler: rangeServer,
    get bucket() {
      return bucket;
    },
    get origin() {
      return server.origin;
    },
    get requests() {
      return server.requests;
    },
    sources: (options: Options = {}) =>
      createSources({ bucket, allowLoopback: true, backoffMs: [5, 10, 20], ...options }),
    resolve: (path: string, options?: Options, maxBytes = 1024 * MIB) =>
      world.sources(options).resolve(server.origin + path, 'spool/job', { maxBytes }),
    /** The reference as it comes out of a stored plan. */
    async refOf(path: string): Promise<SourceRef> {
      const resolved = await world.resolve(path);
      if (!resolved.ok) throw new Error(resolved.error.message);
      return JSON.parse(JSON.stringify(resolved.value));
    },
    async expectWhole(ref: SourceRef, expected: Uint8Array): Promise<void> {
      const source = world.sources().open(ref);
      expect(source.sizeBytes).toBe(expected.length);
      for (const [offset, length] of [
        [0, 10],
        [1000, MIB],
        [expected.length - 7, 100],
        [expected.length, 5],
      ]) {
        const bytes = await source.read(offset, length);
        expect(Buffer.compare(bytes, expected.subarray(offset, offset + length))).toBe(0);
      }
    },
    /** The error that reading the first thousand bytes ends with. */
    async readError(ref: SourceRef, options?: Options) {
      const error = await world
        .sources(options)
        .open(ref)
        .read(0, 1000)
        .catch((thrown: unknown) => thrown);
      if (!(error instanceof SourceReadError)) throw new Error(`no SourceReadError but ${String(error)}`);
      return error.error;
    },
    storedKeys: async () => (await bucket.list()).objects.map(({ key }) => key),
  };

  beforeAll(async () => {
    miniflare = new Miniflare({ modules: true, script: 'export default {};', r2Buckets: ['BUCKET'] });
    bucket = (await miniflare.getR2Bucket('BUCKET')) as unknown as R2Bucket;
    server = await startServer((request, response) => world.handler(request, response));
  });
  afterAll(async () => {
    await server.close();
    await miniflare.dispose();
  });
  beforeEach(() => {
    server.requests.length = 0;
  });
  afterEach(async () => {
    await bucket.delete(await world.storedKeys());
  });
  return world;
}

/** An error result as `toMatchObject` takes it. */
export const failure = (kind: string, message: RegExp) => ({
  ok: false,
  error: { kind, message: expect.stringMatching(message) },
});
