import { release } from '../../audio/index.ts';
import type { ByteSource } from '../../audio/types.ts';
import { SourceReadError } from './errors.ts';
import { sleep } from './http-client.ts';

/**
 * Ranged reads of an object in R2.
 *
 * @param backoffMs pauses before the second, third … try of a read
 * @throws from `read`: SourceReadError when the object is gone; whatever R2 failed with last, after the retries
 */
export function openObject(
  bucket: R2Bucket,
  { key, sizeBytes, etag }: { readonly key: string; readonly sizeBytes: number; readonly etag?: string },
  backoffMs: readonly number[],
): ByteSource {
  let last = new Uint8Array(0);
  let isClosed = false;
  return {
    sizeBytes,
    async read(offset, length) {
      const wanted = Math.min(length, sizeBytes - offset);
      release(last);
      if (wanted <= 0) return new Uint8Array(0);
      for (let attempt = 0; ; attempt++) {
        try {
          const object = await bucket.get(key, { range: { offset, length: wanted } });
          if (!object || object.size !== sizeBytes || (etag !== undefined && object.etag !== etag)) {
            throw new SourceReadError({ kind: 'changed', message: 'The stored recording is no longer there.' });
          }
          last = new Uint8Array(await object.arrayBuffer());
          if (isClosed) release(last);
          return last;
        } catch (error) {
          if (error instanceof SourceReadError || attempt >= backoffMs.length) throw error;
          await sleep(backoffMs[attempt]);
        }
      }
    },
    close() {
      isClosed = true;
      release(last);
    },
  };
}
