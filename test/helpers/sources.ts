import type { IncomingMessage, ServerResponse } from 'node:http';
import { afterAll, afterEach, beforeAll, beforeEach, expect, vi } from 'vitest';
import type { ByteSource } from '../../src/audio/audio-ports.ts';
import type { OpenSource } from '../../src/jobs/job-ports.ts';
import { type SourceError, SourceReadError } from '../../src/jobs/source-error.ts';
import { type CopyEnd, type CopyState, copyRecording } from '../../src/platform/sources/copy.ts';
import { createSources, httpClient, type SourcesOptions } from '../../src/platform/sources/sources.ts';
import { random } from './audio.ts';
import { serveRanges, startServer, type TestServer } from './http-server.ts';
import { startStorage } from './storage.ts';

export const MIB = 1024 * 1024;

const next = random(7);
/** Bytes that are longer than three blocks. */
export const recording = Uint8Array.from({ length: 3 * MIB + 12_345 }, () => Math.floor(next() * 256));
/** As many bytes whose values depend on their position. */
export const numbered = (length: number): Uint8Array =>
  new Uint8Array(length).map((_, i) => (i * 31 + (i >> 12)) & 255);

export const etag = '"v1"';

/** The key of copies. */
export const COPY = 'work/job/source';
export const page = new TextEncoder().encode('<!DOCTYPE html>\n<html><head><title>Sign in</title></head></html>');

export type Handler = (request: IncomingMessage, response: ServerResponse) => void;

/** A static file server with ranges and a strong entity tag. */
export const rangeServer: Handler = (request, response) => serveRanges(request, response, { bytes: recording, etag });

/** Sends the first bytes of an answer, whose stated length may be larger, and closes the connection. */
export function breakAfter(
  request: IncomingMessage,
  response: ServerResponse,
  bytes: Uint8Array,
  headers: Record<string, string | number>,
): void {
  response.writeHead('Content-Range' in headers ? 206 : 200, headers);
  response.write(bytes, () => setTimeout(() => request.socket.destroy(), 5));
}

/** Headers of the rest of a file from `start` on. */
export const partOf = (bytes: Uint8Array, start: number) => ({
  'Content-Range': `bytes ${start}-${bytes.length - 1}/${bytes.length}`,
  'Content-Length': bytes.length - start,
  ETag: etag,
});

/** First byte of a requested range. */
export const startOf = ({ headers }: IncomingMessage): number =>
  Number(/^bytes=(\d+)-/.exec(headers.range ?? '')?.[1] ?? 0);

type Options = Partial<SourcesOptions>;

/** Result of copying the recording at an address. */
export type Fetched =
  | { readonly ok: true; readonly how: 'in place' | 'copied'; readonly bytes: Uint8Array }
  | { readonly ok: false; readonly error: SourceError };

interface CopyBounds {
  readonly maxBytes?: number;
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
  readonly state?: CopyState;
  readonly bucket?: R2Bucket;
  /** Receives the saved states, also if the copy throws. */
  readonly saved?: (CopyState | undefined)[];
}

/** All bytes of a stream from `offset` on. */
export async function readForward(source: ByteSource, offset = 0): Promise<Uint8Array> {
  const stream = await source.open(offset);
  const chunks: Uint8Array[] = [];
  try {
    for (let chunk = await stream.read(); chunk; chunk = await stream.read()) chunks.push(chunk.slice());
  } finally {
    stream.close();
  }
  return Buffer.concat(chunks);
}

export function expectSame(bytes: Uint8Array, expected: Uint8Array): void {
  expect(bytes.length).toBe(expected.length);
  expect(Buffer.compare(bytes, expected)).toBe(0);
}

/**
 * A real HTTP server and a real R2 bucket for the tests of one file. After each test the bucket is emptied, and all
 * answers must have ended.
 */
export function useSources() {
  let bucket: R2Bucket;
  let server: TestServer;
  const openAnswers = new Set<ServerResponse>();
  const clientOf = (options: Options = {}) =>
    httpClient({ allowLoopback: true, backoffMs: [5, 10, 20], pause: async () => undefined, ...options });
  const world = {
    /** Handler of the server; each test may replace it. */
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
    sources: (options: Options = {}) => createSources({ bucket, ...clientOf(options), ...options }),
    open: (path: string, options?: Options, maxBytes = 1024 * MIB) =>
      world.sources(options).open(server.origin + path, maxBytes),
    /** Opens the recording at an address, which must be readable without a copy. */
    async inPlace(path: string, options?: Options): Promise<OpenSource> {
      const opened = await world.open(path, options);
      if (!opened.ok) throw new Error(opened.error.message);
      if (opened.value === 'copy') throw new Error('only a copy can be read');
      return opened.value;
    },
    /** Copies the recording at an address; `states` are the saved states. */
    async copy(path: string, options: Options = {}, bounds: CopyBounds = {}) {
      const states = bounds.saved ?? [];
      const end: CopyEnd = await copyRecording(
        clientOf(options),
        server.origin + path,
        {
          bucket: bounds.bucket ?? bucket,
          key: COPY,
          maxBytes: bounds.maxBytes ?? 1024 * MIB,
          timeoutMs: bounds.timeoutMs ?? 60_000,
          signal: bounds.signal ?? new AbortController().signal,
          // As the storage of an object does.
          save: async (state) => void states.push(structuredClone(state)),
        },
        bounds.state,
      );
      return { end, states };
    },
    /** The copy. */
    async copied(): Promise<Uint8Array | undefined> {
      const object = await bucket.get(COPY);
      return object ? new Uint8Array(await object.arrayBuffer()) : undefined;
    },
    /** Reads a recording as the first step of a job does: without a copy if possible. */
    async fetch(path: string, options?: Options, maxBytes = 1024 * MIB): Promise<Fetched> {
      const opened = await world.open(path, options, maxBytes);
      if (!opened.ok) return opened;
      if (opened.value === 'copy') {
        const { end } = await world.copy(path, options, { maxBytes });
        if (end.kind === 'failed') return { ok: false, error: end.error };
        if (end.kind !== 'whole') throw new Error(end.kind);
        return { ok: true, how: 'copied', bytes: (await world.copied())! };
      }
      const { source, close } = opened.value;
      try {
        return { ok: true, how: 'in place', bytes: await readForward(source) };
      } catch (error) {
        if (error instanceof SourceReadError) return { ok: false, error: error.error };
        throw error;
      } finally {
        close?.();
      }
    },
    /** Streams from the start and from the middle; also ranges if the source can seek. */
    async expectWhole(source: ByteSource, expected: Uint8Array): Promise<void> {
      expect(source.sizeBytes).toBe(expected.length);
      for (const offset of [0, Math.floor(expected.length / 2), expected.length - 7, expected.length])
        expectSame(await readForward(source, offset), expected.subarray(offset));
      if (!source.canSeek) return;
      for (const [offset, length] of [
        [0, 10],
        [1000, MIB],
        [expected.length - 7, 100],
        [expected.length, 5],
      ])
        expectSame(await source.read(offset, length), expected.subarray(offset, offset + length));
    },
    /** The error of a read from `offset` on. */
    async readError(source: ByteSource, offset = 0): Promise<SourceError> {
      const error = await readForward(source, offset).catch((thrown: unknown) => thrown);
      if (!(error instanceof SourceReadError)) throw new Error(`no SourceReadError but ${String(error)}`);
      return error.error;
    },
    storedKeys: async () => (await bucket.list()).objects.map(({ key }) => key),
    /** Expects that every answer was read to its end or cancelled. */
    expectAnswersEnded: () => vi.waitFor(() => expect(openAnswers.size).toBe(0)),
  };

  beforeAll(async () => {
    ({ bucket } = await startStorage());
    server = await startServer((request, response) => {
      openAnswers.add(response);
      response.on('close', () => openAnswers.delete(response));
      world.handler(request, response);
    });
  });
  afterAll(() => server.close());
  beforeEach(() => {
    server.requests.length = 0;
  });
  afterEach(async () => {
    await bucket.delete(await world.storedKeys());
    await world.expectAnswersEnded();
  });
  return world;
}

/** An error result for `toMatchObject`. */
export const failure = (kind: string, message: RegExp) => ({
  ok: false,
  error: { kind, message: expect.stringMatching(message) },
});
