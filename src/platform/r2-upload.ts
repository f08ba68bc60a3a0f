import type { Result } from '../audio/types.ts';
import { createNotedUpload } from './noted-upload.ts';

/** R2 wants all parts but the last of one size, at least 5 MiB; one part is held in memory at a time. */
export const PART_BYTES = 5 * 1024 * 1024;

export type UploadFault = { readonly kind: 'too_large' | 'empty' };
type Stored = Result<{ readonly sizeBytes: number }, UploadFault>;

/**
 * Stores a request's body under a key, in bounded memory.
 *
 * With a Content-Length the body goes to R2 as it comes; without one (chunked encoding) as a multipart upload, because R2
 * must know the length of what it stores. A body that breaks off, or is refused, leaves no object behind.
 *
 * @throws whatever the body's stream or R2 fails with
 */
export async function storeBody(
  bucket: R2Bucket,
  key: string,
  body: ReadableStream<Uint8Array>,
  { contentLength, maxBytes }: { readonly contentLength: number | undefined; readonly maxBytes: number },
): Promise<Stored> {
  if (contentLength === undefined) return storeParts(bucket, key, body, maxBytes);
  const { readable, writable } = new FixedLengthStream(contentLength);
  // Fails, and makes the put fail with it, when the body has another length than it said.
  const piped = body.pipeTo(writable);
  await Promise.all([bucket.put(key, readable), piped]);
  return { ok: true, value: { sizeBytes: contentLength } };
}

async function storeParts(
  bucket: R2Bucket,
  key: string,
  body: ReadableStream<Uint8Array>,
  maxBytes: number,
): Promise<Stored> {
  const parts = partsOf(body, PART_BYTES);
  let part = await parts.next();
  if (part.done) return { ok: false, error: { kind: 'empty' } };
  if (part.value.length > maxBytes) return { ok: false, error: { kind: 'too_large' } };
  if (part.value.length < PART_BYTES) {
    await bucket.put(key, part.value);
    return { ok: true, value: { sizeBytes: part.value.length } };
  }

  const upload = await createNotedUpload(bucket, key);
  try {
    const uploaded: R2UploadedPart[] = [];
    let sizeBytes = 0;
    for (; !part.done; part = await parts.next()) {
      sizeBytes += part.value.length;
      if (sizeBytes > maxBytes) {
        await parts.return();
        await upload.abort();
        return { ok: false, error: { kind: 'too_large' } };
      }
      uploaded.push(await upload.uploadPart(uploaded.length + 1, part.value));
    }
    await upload.complete(uploaded);
    return { ok: true, value: { sizeBytes } };
  } catch (error) {
    await upload.abort().catch(() => undefined); // the sweep finds it
    throw error;
  }
}

/** Cuts a stream into parts of `partBytes`, the last one shorter; none for an empty stream. Leaves an unread rest alone. */
async function* partsOf(body: ReadableStream<Uint8Array>, partBytes: number): AsyncGenerator<Uint8Array, void> {
  const reader = body.getReader();
  try {
    const part = new Uint8Array(partBytes);
    let filled = 0;
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      let chunk = next.value;
      while (filled + chunk.length >= partBytes) {
        part.set(chunk.subarray(0, partBytes - filled), filled);
        chunk = chunk.subarray(partBytes - filled);
        yield part;
        filled = 0;
      }
      part.set(chunk, filled);
      filled += chunk.length;
    }
    if (filled > 0) yield part.subarray(0, filled);
  } finally {
    reader.releaseLock();
  }
}
