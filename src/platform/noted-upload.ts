/** Below this lies a note of every multipart upload that has been neither completed nor aborted. */
const NOTES_PREFIX = 'uploads/';
/** R2 drops an upload by itself after so long: what cannot be aborted until then need not be. */
const DROPPED_AFTER_MS = 7 * 24 * 3600 * 1000;

interface Note {
  readonly key: string;
  readonly uploadId: string;
}

/** A multipart upload that the sweep finds should the process that writes it die. */
export type NotedUpload = Pick<R2MultipartUpload, 'uploadPart' | 'complete' | 'abort' | 'uploadId'> & {
  readonly noteKey: string;
};

/**
 * Begins a multipart upload. Its parts are in no list of objects: without a note of it the bytes of one that was cut
 * off would stay for a week in R2, and forever in the local service.
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

/** The upload that another process has begun. */
export const resumeNotedUpload = (bucket: R2Bucket, key: string, uploadId: string, noteKey: string): NotedUpload =>
  noted(bucket, bucket.resumeMultipartUpload(key, uploadId), noteKey);

function noted(bucket: R2Bucket, upload: R2MultipartUpload, noteKey: string): NotedUpload {
  // A note that stays names an upload that is over, which to abort does nothing.
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
 * Aborts uploads that are not over.
 *
 * @param isInVain says of an upload that it may be aborted, by its key and when it was begun; milliseconds since the
 *   Unix epoch
 * @returns how many notes are gone
 */
export async function abortNotedUploads(
  bucket: R2Bucket,
  isInVain: (key: string, begunAt: number) => Promise<boolean>,
): Promise<number> {
  let count = 0;
  let cursor: string | undefined;
  do {
    const page = await bucket.list({ prefix: NOTES_PREFIX, cursor, include: ['customMetadata'] });
    for (const object of page.objects) {
      const { key: noteKey, uploaded } = object;
      const begunAt = uploaded.getTime();
      const note = noteOf(object) ?? (await (await bucket.get(noteKey))?.json<Note>());
      if (note && !(await isInVain(note.key, begunAt))) continue;
      if (note && !(await isAborted(bucket, note)) && begunAt >= Date.now() - DROPPED_AFTER_MS) continue;
      await bucket.delete(noteKey);
      count++;
    }
    cursor = page.truncated ? page.cursor : undefined;
  } while (cursor !== undefined);
  return count;
}

/**
 * As the list has it: a call for each note would be more than a sweep may make where thousands of uploads have been cut
 * off. Notes of earlier versions have it in their text alone.
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
