import type { ByteSource, ByteStream } from '../../audio/audio-ports.ts';
import { pause } from '../clock.ts';
import { SourceReadError } from './errors.ts';
import { sleep } from './http-client.ts';

/**
 * Bytes of one read. Objects are not read as one long stream: the local runtime buffers such a stream in memory and
 * blocks all other requests, and on the platform a stream that is open for minutes may break.
 */
const PIECE_BYTES = 4 * 1024 * 1024;

interface ObjectFile {
  readonly key: string;
  readonly sizeBytes: number;
  readonly etag?: string;
}

/**
 * An object in R2, read in pieces.
 *
 * @param backoffMs pauses before the second, third … try of a piece
 * @throws from reads: SourceReadError when the object is gone or another one; whatever R2 failed with last, after the
 *   retries
 */
export function objectSource(bucket: R2Bucket, file: ObjectFile, backoffMs: readonly number[]): ByteSource {
  const { key, sizeBytes, etag } = file;
  const get = async (offset: number, length: number): Promise<Uint8Array> => {
    const object = await bucket.get(key, { range: { offset, length } });
    if (!object || object.size !== sizeBytes || (etag !== undefined && object.etag !== etag))
      throw new SourceReadError({ kind: 'changed', message: 'The stored recording is no longer there.' });
    return new Uint8Array(await object.arrayBuffer());
  };
  const read = async (offset: number, length: number): Promise<Uint8Array> => {
    const wanted = Math.min(length, sizeBytes - offset);
    if (wanted <= 0) return new Uint8Array(0);
    for (let tries = 0; ; tries++) {
      try {
        return await get(offset, wanted);
      } catch (error) {
        if (error instanceof SourceReadError || tries >= backoffMs.length) throw error;
        await sleep(backoffMs[tries]);
      }
    }
  };
  return {
    sizeBytes,
    canSeek: true,

    async open(offset): Promise<ByteStream> {
      let at = offset;
      let isClosed = false;
      return {
        async read() {
          if (isClosed || at >= sizeBytes) return undefined;
          const bytes = await read(at, PIECE_BYTES);
          at += bytes.length;
          return isClosed ? undefined : bytes;
        },
        close() {
          isClosed = true;
        },
      };
    },

    read,
  };
}

/** A range of an object as a response body, read on demand. Fails like the reads of `objectSource`. */
export function objectBody(
  bucket: R2Bucket,
  file: ObjectFile,
  { offset, length }: { readonly offset: number; readonly length: number },
): ReadableStream<Uint8Array> {
  const source = objectSource(bucket, file, []);
  const end = offset + length;
  let at = offset;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        if (at >= end) return controller.close();
        const piece = await source.read(at, Math.min(PIECE_BYTES, end - at));
        at += piece.length;
        controller.enqueue(piece);
        await pause();
      },
    },
    { highWaterMark: 0 },
  );
}

/** A recording that lies in memory. */
export const bytesSource = (bytes: Uint8Array): ByteSource => ({
  sizeBytes: bytes.length,
  canSeek: true,
  async open(offset) {
    let rest: Uint8Array | undefined = bytes.subarray(offset);
    return {
      async read() {
        const all = rest;
        rest = undefined;
        return all;
      },
      close() {},
    };
  },
  read: async (offset, length) => bytes.subarray(offset, offset + length),
});
