import type { ByteSource, ByteStream } from '../audio/audio-ports.ts';
import { release } from '../audio/memory.ts';
import type { ObjectChunks, ObjectStore } from '../jobs/job-ports.ts';
import { SourceReadError } from '../jobs/source-error.ts';
import { pause } from './event-loop.ts';
import { abortNotedUploads, createNotedUpload, type NotedUpload, PART_BYTES } from './r2-uploads.ts';
import { sleep } from './sources/http-client.ts';

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

    abortUploads: (isAbandoned) => abortNotedUploads(bucket, isAbandoned),

    async list(prefix, limit) {
      const { objects } = await bucket.list({ prefix, limit });
      return objects.map((object) => object.key);
    },

    async folders(prefix, limit, after) {
      // `0` is the character after `/`, so this key sorts after the whole folder.
      const startAfter = after === undefined ? undefined : `${prefix}${after}0`;
      const found: string[] = [];
      // A page may hold fewer than `limit` without being the last.
      for (let cursor: string | undefined; ; ) {
        const page = await bucket.list({ prefix, limit: limit - found.length, delimiter: '/', startAfter, cursor });
        found.push(...page.delimitedPrefixes.map((folder) => folder.slice(prefix.length, -1)));
        if (!page.truncated || found.length >= limit) return found;
        cursor = page.cursor;
      }
    },
  };
}

/** Collects chunks in one reused buffer; small objects take one put, larger ones a multipart upload. */
async function putStream(bucket: R2Bucket, key: string, chunks: ObjectChunks): Promise<void> {
  const text = new TextParts(PART_BYTES);
  let upload: NotedUpload | undefined;
  const uploaded: R2UploadedPart[] = [];
  try {
    for await (const chunk of chunks) {
      for (let rest = chunk; rest.length > 0; ) {
        rest = typeof rest === 'string' ? text.add(rest) : text.addBytes(rest);
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

const FIRST_BYTES = 64 * 1024;

/**
 * Text as UTF-8 in parts of exactly `partBytes`, the last one shorter. One buffer is reused, because the output of a
 * day-long recording has hundreds of megabytes, and an array per text would accumulate garbage. A character may be
 * split between two parts.
 */
export class TextParts {
  readonly #encoder = new TextEncoder();
  #buffer: Uint8Array<ArrayBuffer>;
  #used = 0;
  /** Bytes of the last character that belong to the next part. */
  #rest = new Uint8Array(0);

  constructor(private readonly partBytes: number) {
    this.#buffer = new Uint8Array(Math.min(FIRST_BYTES, partBytes));
  }

  /** @returns the text that did not fit; if not empty, the part is full and must be taken */
  add(text: string): string {
    let rest = text;
    while (rest !== '') {
      const { read, written } = this.#encoder.encodeInto(rest, this.#buffer.subarray(this.#used));
      this.#used += written;
      rest = rest.slice(read);
      if (rest === '') break;
      if (this.#buffer.length < this.partBytes) this.#grow();
      else return this.#split(rest);
    }
    return rest;
  }

  /** As `add`, for bytes. */
  addBytes(bytes: Uint8Array): Uint8Array {
    while (this.#buffer.length < this.partBytes && this.#used + bytes.length > this.#buffer.length) this.#grow();
    const taken = bytes.subarray(0, this.#buffer.length - this.#used);
    this.#buffer.set(taken, this.#used);
    this.#used += taken.length;
    return bytes.subarray(taken.length);
  }

  get isFull(): boolean {
    return this.#used === this.partBytes;
  }

  /** The part so far; valid until `clear`. */
  get bytes(): Uint8Array<ArrayBuffer> {
    return this.#buffer.subarray(0, this.#used);
  }

  /** Begins the next part. */
  clear(): void {
    this.#buffer.set(this.#rest);
    this.#used = this.#rest.length;
    this.#rest = new Uint8Array(0);
  }

  #grow(): void {
    const before = this.#buffer;
    this.#buffer = new Uint8Array(Math.min(this.partBytes, 2 * before.length));
    this.#buffer.set(before);
    release(before);
  }

  /** Fills the part with the first bytes of a character that does not fit. */
  #split(text: string): string {
    const [character = ''] = text;
    const bytes = this.#encoder.encode(character);
    const room = this.partBytes - this.#used;
    this.#buffer.set(bytes.subarray(0, room), this.#used);
    this.#used = this.partBytes;
    this.#rest = bytes.slice(room);
    return text.slice(character.length);
  }
}

/**
 * Bytes of one read. Objects are not read as one long stream: the local runtime buffers such a stream in memory and
 * blocks all other requests, and on the platform a stream that is open for minutes may break.
 */
const READ_BYTES = 4 * 1024 * 1024;

interface ObjectFile {
  readonly key: string;
  readonly sizeBytes: number;
  readonly etag?: string;
}

/**
 * An object in R2, read in chunks.
 *
 * @param backoffMs pauses before the second, third … try of a chunk
 * @throws from reads: SourceReadError if the object is missing or was replaced; the last error of R2 after the retries
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
    const byteCount = Math.min(length, sizeBytes - offset);
    if (byteCount <= 0) return new Uint8Array(0);
    for (let tries = 0; ; tries++) {
      try {
        return await get(offset, byteCount);
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
          const bytes = await read(at, READ_BYTES);
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
        const chunk = await source.read(at, Math.min(READ_BYTES, end - at));
        at += chunk.length;
        controller.enqueue(chunk);
        await pause();
      },
    },
    { highWaterMark: 0 },
  );
}

/** A recording in memory. */
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
