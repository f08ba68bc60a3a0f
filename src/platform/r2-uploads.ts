import type { Result } from '../audio/audio-ports.ts';
import { LimitedReader, type ReadLimits, type Slot, Slots, TooSlow } from '../jobs/upload-bodies.ts';
import { paused } from './event-loop.ts';

/** R2 requires all parts but the last to have the same size, at least 5 MiB; one part is in memory at a time. */
export const PART_BYTES = 5 * 1024 * 1024;

export type UploadFault = { readonly kind: 'too_large' | 'empty' };
type Stored<Fault = UploadFault> = Result<{ readonly sizeBytes: number }, Fault>;

/** Concurrent uploads; each holds a part in memory: 20 MiB per isolate. */
const clients = new Slots({ slots: 4, perAccount: 2 });
/** A client that pauses, or sends less than 8 KiB/s, must not keep its slot. */
const READ_LIMITS: ReadLimits = { pauseMs: 30_000, minBytesPerMinute: 60 * 8 * 1024 };

/**
 * `storeBody` for the body of a client. Without a Content-Length an isolate stores four at once, two per account;
 * further ones wait for at most 20 s.
 */
export async function storeUpload(
  bucket: R2Bucket,
  key: string,
  body: ReadableStream<Uint8Array>,
  { accountId, ...facts }: BodyFacts & { readonly accountId: string },
): Promise<Stored<UploadFault | { readonly kind: 'no_place' } | { readonly kind: 'too_slow' }>> {
  if (facts.contentLength !== undefined) return storeBody(bucket, key, body, facts);
  const slot = await clients.take(accountId);
  if (!slot) return { ok: false, error: { kind: 'no_place' } };
  const reader = new LimitedReader(body, READ_LIMITS);
  try {
    return await storeParts(bucket, key, partsOf(paused(chunksOf(reader, slot)), PART_BYTES), facts.maxBytes);
  } catch (error) {
    if (error instanceof TooSlow) return { ok: false, error: { kind: 'too_slow' } };
    throw error;
  } finally {
    reader.close();
    slot.release();
  }
}

async function* chunksOf(reader: LimitedReader, slot: Slot): AsyncGenerator<Uint8Array, void> {
  for (let chunk = await reader.read(); chunk; chunk = await reader.read()) {
    slot.renew();
    yield chunk;
  }
}

interface BodyFacts {
  readonly contentLength: number | undefined;
  readonly maxBytes: number;
}

/**
 * Stores a request's body under a key, in bounded memory.
 *
 * With a Content-Length the body is streamed to R2; without one (chunked encoding) it becomes a multipart upload,
 * because R2 must know the length of a put. A body that breaks off or is refused leaves no object.
 *
 * @throws errors of the body's stream or of R2
 */
export async function storeBody(
  bucket: R2Bucket,
  key: string,
  body: ReadableStream<Uint8Array>,
  { contentLength, maxBytes }: BodyFacts,
): Promise<Stored> {
  if (contentLength === undefined)
    return storeParts(bucket, key, partsOf(paused(chunksOfStream(body)), PART_BYTES), maxBytes);
  const { readable, writable } = new FixedLengthStream(contentLength);
  // If the body's length differs from its Content-Length, the stream fails, and the put with it.
  await Promise.all([bucket.put(key, readable), pipe(body, writable)]);
  return { ok: true, value: { sizeBytes: contentLength } };
}

/**
 * Like `pipeTo`, but yields to other requests. The runtime's own `pipeTo` blocked the local service for 17 s while it
 * stored a gibibyte.
 */
async function pipe(body: ReadableStream<Uint8Array>, writable: WritableStream<Uint8Array>): Promise<void> {
  const writer = writable.getWriter();
  try {
    for await (const chunk of paused(chunksOfStream(body))) await writer.write(chunk);
    await writer.close();
  } catch (error) {
    await Promise.allSettled([writer.abort(error), body.cancel(error)]);
    throw error;
  }
}

async function storeParts(
  bucket: R2Bucket,
  key: string,
  parts: AsyncGenerator<Uint8Array, void>,
  maxBytes: number,
): Promise<Stored> {
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

/** If the reader stops early, the rest of the stream stays unread. */
async function* chunksOfStream(body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array, void> {
  const reader = body.getReader();
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) yield next.value;
  } finally {
    reader.releaseLock();
  }
}

/** Joins chunks to parts of `partBytes`, the last one shorter; none for an empty body. */
async function* partsOf(chunks: AsyncGenerator<Uint8Array, void>, partBytes: number): AsyncGenerator<Uint8Array, void> {
  const part = new Uint8Array(partBytes);
  let filled = 0;
  for await (let chunk of chunks) {
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
}

/** Prefix of the notes: one for every multipart upload that was neither completed nor aborted. */
const NOTES_PREFIX = 'uploads/';
/** R2 itself drops an upload after this time, so that the sweep need not abort it. */
const DROPPED_AFTER_MS = 7 * 24 * 3600 * 1000;

interface Note {
  readonly key: string;
  readonly uploadId: string;
}

/** A multipart upload with a note, by which the sweep finds it if its process crashes. */
export type NotedUpload = Pick<R2MultipartUpload, 'uploadPart' | 'complete' | 'abort' | 'uploadId'> & {
  readonly noteKey: string;
};

/**
 * Begins a multipart upload. No list of objects shows its parts: without a note, the bytes of an interrupted upload
 * would stay in R2 for a week, and in the local service forever.
 */
export async function createNotedUpload(
  bucket: R2Bucket,
  key: string,
  options?: R2MultipartOptions,
): Promise<NotedUpload> {
  const upload = await bucket.createMultipartUpload(key, options);
  const noteKey = `${NOTES_PREFIX}${crypto.randomUUID()}`;
  const note: Note = { key, uploadId: upload.uploadId };
  await bucket.put(noteKey, JSON.stringify(note), { customMetadata: { ...note } });
  return noted(bucket, upload, noteKey);
}

/** An upload that another process began. */
export const resumeNotedUpload = (bucket: R2Bucket, key: string, uploadId: string, noteKey: string): NotedUpload =>
  noted(bucket, bucket.resumeMultipartUpload(key, uploadId), noteKey);

function noted(bucket: R2Bucket, upload: R2MultipartUpload, noteKey: string): NotedUpload {
  // A note that could not be deleted is harmless: to abort an upload that has ended does nothing.
  const forget = () => bucket.delete(noteKey).catch(() => undefined);
  return {
    uploadId: upload.uploadId,
    noteKey,
    uploadPart: (number, bytes) => upload.uploadPart(number, bytes),
    async complete(parts) {
      const object = await upload.complete(parts);
      await forget();
      return object;
    },
    async abort() {
      await upload.abort();
      await forget();
    },
  };
}

/**
 * Aborts abandoned uploads.
 *
 * @param isAbandoned whether an upload may be aborted, by its key and its start in milliseconds since the Unix epoch
 * @returns number of deleted notes
 */
export async function abortNotedUploads(
  bucket: R2Bucket,
  isAbandoned: (key: string, begunAt: number) => Promise<boolean>,
): Promise<number> {
  let count = 0;
  let cursor: string | undefined;
  do {
    const page = await bucket.list({ prefix: NOTES_PREFIX, cursor, include: ['customMetadata'] });
    for (const object of page.objects) {
      const { key: noteKey, uploaded } = object;
      const begunAt = uploaded.getTime();
      const note = noteOf(object) ?? (await (await bucket.get(noteKey))?.json<Note>());
      if (note && !(await isAbandoned(note.key, begunAt))) continue;
      if (note && !(await isAborted(bucket, note)) && begunAt >= Date.now() - DROPPED_AFTER_MS) continue;
      await bucket.delete(noteKey);
      count++;
    }
    cursor = page.truncated ? page.cursor : undefined;
  } while (cursor !== undefined);
  return count;
}

/**
 * The note from the metadata in the list: after thousands of interrupted uploads, a call per note would exceed the
 * calls that a sweep may make. Notes of earlier versions have no metadata.
 */
function noteOf({ customMetadata: { key, uploadId } = {} }: R2Object): Note | undefined {
  return key !== undefined && uploadId !== undefined ? { key, uploadId } : undefined;
}

const isAborted = (bucket: R2Bucket, { key, uploadId }: Note): Promise<boolean> =>
  bucket
    .resumeMultipartUpload(key, uploadId)
    .abort()
    .then(
      () => true,
      () => false,
    );
