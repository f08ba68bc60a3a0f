import type { ObjectChunks, ObjectStore } from '../jobs/job-ports.ts';
import { abortNotedUploads, createNotedUpload, type NotedUpload } from './noted-upload.ts';
import { PART_BYTES } from './r2-upload.ts';
import { objectBody } from './sources/object-source.ts';
import { TextParts } from './text-parts.ts';

const DELETE_BATCH = 1000;

/** `ObjectStore` over an R2 bucket. */
export function createObjectStore(bucket: R2Bucket): ObjectStore {
  return {
    async put(key, bytes) {
      await bucket.put(key, bytes);
    },

    async replace(key, bytes, etag) {
      const onlyIf = etag === undefined ? { etagDoesNotMatch: '*' } : { etagMatches: etag };
      return (await bucket.put(key, bytes, { onlyIf }))?.etag;
    },

    putStream: (key, chunks) => putStream(bucket, key, chunks),

    async get(key) {
      const object = await bucket.get(key);
      return object ? new Uint8Array(await object.arrayBuffer()) : undefined;
    },

    async getTagged(key) {
      const object = await bucket.get(key);
      return object ? { bytes: new Uint8Array(await object.arrayBuffer()), etag: object.etag } : undefined;
    },

    async getRange(key, offset, length) {
      const object = await bucket.get(key, { range: { offset, length } });
      if (!object) throw new Error(`object ${key} is gone`);
      return new Uint8Array(await object.arrayBuffer());
    },

    async openStream(key) {
      const object = await bucket.head(key);
      return object ? bodyOf(bucket, object, 0, object.size) : undefined;
    },

    async openRange(key, offset, length) {
      const object = await bucket.head(key);
      return object ? bodyOf(bucket, object, offset, length) : undefined;
    },

    async exists(key) {
      return (await bucket.head(key)) !== null;
    },

    async sizeBytes(key) {
      return (await bucket.head(key))?.size;
    },

    async uploadedAt(key) {
      return (await bucket.head(key))?.uploaded.getTime();
    },

    async deleteMany(keys) {
      for (let from = 0; from < keys.length; from += DELETE_BATCH) {
        await bucket.delete(keys.slice(from, from + DELETE_BATCH));
      }
    },

    abortUploads: (isInVain) => abortNotedUploads(bucket, isInVain),

    async list(prefix, limit) {
      const { objects } = await bucket.list({ prefix, limit });
      return objects.map((object) => object.key);
    },

    async folders(prefix, limit, after) {
      // Zero is the character after the slash: after everything in that folder.
      const startAfter = after === undefined ? undefined : `${prefix}${after}0`;
      const found: string[] = [];
      // A page may hold fewer than asked for without being the last.
      for (let cursor: string | undefined; ; ) {
        const page = await bucket.list({ prefix, limit: limit - found.length, delimiter: '/', startAfter, cursor });
        found.push(...page.delimitedPrefixes.map((folder) => folder.slice(prefix.length, -1)));
        if (!page.truncated || found.length >= limit) return found;
        cursor = page.cursor;
      }
    },
  };
}

/** Puts chunks into one reused part buffer; small objects take one put, larger ones a multipart upload. */
async function putStream(bucket: R2Bucket, key: string, chunks: ObjectChunks): Promise<void> {
  const text = new TextParts(PART_BYTES);
  let upload: NotedUpload | undefined;
  const uploaded: R2UploadedPart[] = [];
  try {
    for await (const chunk of chunks) {
      for (let left = chunk; left.length > 0; ) {
        left = typeof left === 'string' ? text.add(left) : text.addBytes(left);
        if (!text.isFull) continue;
        upload ??= await createNotedUpload(bucket, key);
        uploaded.push(await upload.uploadPart(uploaded.length + 1, text.bytes));
        text.clear();
      }
    }
    if (!upload) {
      await bucket.put(key, text.bytes);
      return;
    }
    if (text.bytes.length > 0) uploaded.push(await upload.uploadPart(uploaded.length + 1, text.bytes));
    await upload.complete(uploaded);
  } catch (error) {
    await upload?.abort().catch(() => undefined); // the sweep finds it
    throw error;
  }
}

const bodyOf = (bucket: R2Bucket, { key, size: sizeBytes, etag }: R2Object, offset: number, length: number) =>
  objectBody(bucket, { key, sizeBytes, etag }, { offset, length });
