import type { ByteSource, ByteStream } from '../../audio/types.ts';
import { SourceReadError } from './errors.ts';
import { sleep } from './http-client.ts';

/** Read between two pauses. */
const PAUSE_BYTES = 1 << 20;

interface ObjectFile {
  readonly key: string;
  readonly sizeBytes: number;
  readonly etag?: string;
}

/**
 * An object in R2, read forward. A stream that breaks goes on at the next byte.
 *
 * @param backoffMs pauses before the second, third … try without progress
 * @throws from reads: SourceReadError when the object is gone or another one; whatever R2 failed with last, after the retries
 */
export function objectSource(
  bucket: R2Bucket,
  file: ObjectFile,
  { backoffMs, pause }: { readonly backoffMs: readonly number[]; readonly pause: () => Promise<void> },
): ByteSource {
  const { key, sizeBytes, etag } = file;
  const get = async (offset: number, length: number): Promise<R2ObjectBody> => {
    const object = await bucket.get(key, { range: { offset, length } });
    if (!object || object.size !== sizeBytes || (etag !== undefined && object.etag !== etag))
      throw new SourceReadError({ kind: 'changed', message: 'The stored recording is no longer there.' });
    return object;
  };
  const again = async <T>(tries: number, error: unknown, next: () => Promise<T>): Promise<T> => {
    if (error instanceof SourceReadError || tries >= backoffMs.length) throw error;
    await sleep(backoffMs[tries]);
    return next();
  };
  return {
    sizeBytes,
    canSeek: true,

    async open(offset): Promise<ByteStream> {
      let at = offset;
      let reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
      let pausedAt = offset;
      let isClosed = false;
      const drop = (): void => {
        void reader?.cancel().catch(() => undefined);
        reader = undefined;
      };
      const read = async (tries = 0): Promise<Uint8Array | undefined> => {
        if (isClosed || at >= sizeBytes) return undefined;
        try {
          reader ??= (await get(at, sizeBytes - at)).body.getReader() as ReadableStreamDefaultReader<Uint8Array>;
          if (isClosed) drop();
          if (!reader) return undefined;
          const { done, value } = await reader.read();
          if (isClosed) return undefined;
          if (done) throw new Error('the object ended early');
          at += value.length;
          if (at - pausedAt >= PAUSE_BYTES) {
            pausedAt = at;
            await pause();
          }
          return value;
        } catch (error) {
          drop();
          return isClosed ? undefined : again(tries, error, () => read(tries + 1));
        }
      };
      return {
        read: () => read(),
        close() {
          isClosed = true;
          drop();
        },
      };
    },

    async read(offset, length) {
      const wanted = Math.min(length, sizeBytes - offset);
      if (wanted <= 0) return new Uint8Array(0);
      const read = async (tries = 0): Promise<Uint8Array> => {
        try {
          return new Uint8Array(await (await get(offset, wanted)).arrayBuffer());
        } catch (error) {
          return again(tries, error, () => read(tries + 1));
        }
      };
      return read();
    },
  };
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
