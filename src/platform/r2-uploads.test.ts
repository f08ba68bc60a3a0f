import { afterAll, beforeAll, expect, it } from 'vitest';
import { startStorage } from '../../test/helpers/storage.ts';
import { createObjectStore } from './r2-objects.ts';
import { createNotedUpload, PART_BYTES, storeBody } from './r2-uploads.ts';

let storage: Awaited<ReturnType<typeof startStorage>>;
beforeAll(async () => {
  storage = await startStorage();
});
afterAll(() => storage?.stop());

/** A body of unknown length whose bytes depend on their position. */
function body(sizeBytes: number, failAt = Number.POSITIVE_INFINITY): ReadableStream<Uint8Array> {
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      if (at >= failAt) return controller.error(new Error('hung up'));
      if (at >= sizeBytes) return controller.close();
      const chunk = Uint8Array.from({ length: Math.min(1_000_003, sizeBytes - at) }, (_, i) => ((at + i) * 31) & 0xff);
      at += chunk.length;
      controller.enqueue(chunk);
    },
  });
}
const store = (key: string, source: ReadableStream<Uint8Array>, maxBytes = 64 * 1024 * 1024) =>
  storeBody(storage.bucket, key, source, { contentLength: undefined, maxBytes });

it.each([1, PART_BYTES - 1, PART_BYTES, PART_BYTES + 1, 2 * PART_BYTES + 12345])(
  'stores a body of %i bytes and unknown length',
  async (sizeBytes) => {
    expect(await store(`size-${sizeBytes}`, body(sizeBytes))).toEqual({ ok: true, value: { sizeBytes } });
    const object = await storage.bucket.get(`size-${sizeBytes}`);
    const bytes = new Uint8Array((await object?.arrayBuffer()) ?? new ArrayBuffer(0));
    expect(bytes.length).toBe(sizeBytes);
    expect(bytes.every((byte, i) => byte === ((i * 31) & 0xff))).toBe(true);
  },
);

it('refuses an empty and a too large body and stores nothing', async () => {
  expect(await store('empty', body(0))).toEqual({ ok: false, error: { kind: 'empty' } });
  const tooLarge = await store('large', body(2 * PART_BYTES), PART_BYTES + 1);
  expect(tooLarge).toEqual({ ok: false, error: { kind: 'too_large' } });
  const small = await store('large', body(100), 99);
  expect(small).toEqual({ ok: false, error: { kind: 'too_large' } });
  expect([await storage.bucket.head('empty'), await storage.bucket.head('large')]).toEqual([null, null]);
});

it('stores nothing when the sender disconnects', async () => {
  await expect(store('gone', body(3 * PART_BYTES, 2 * PART_BYTES))).rejects.toThrow('hung up');
  expect(await storage.bucket.head('gone')).toBeNull();
});

it('reuses the memory of one part for all parts', async () => {
  const seen: ArrayBufferLike[] = [];
  const upload = {
    uploadPart: async (_: number, part: Uint8Array) => void seen.push(part.buffer),
    complete: async () => {},
  };
  const bucket = { put: async () => {}, delete: async () => {}, createMultipartUpload: async () => upload };
  const stored = await storeBody(bucket as unknown as R2Bucket, 'held', body(3 * PART_BYTES + 1), {
    contentLength: undefined,
    maxBytes: 4 * PART_BYTES,
  });
  expect(stored).toEqual({ ok: true, value: { sizeBytes: 3 * PART_BYTES + 1 } });
  expect(seen).toHaveLength(4);
  expect(new Set(seen).size).toBe(1);
});

it('replaces an object only if it has not changed since it was read', async () => {
  const objects = createObjectStore(storage.bucket);
  const first = await objects.replace('state', Uint8Array.of(1), undefined);
  expect(await objects.replace('state', Uint8Array.of(2), undefined)).toBeUndefined();
  expect(await objects.getTagged('state')).toEqual({ bytes: Uint8Array.of(1), etag: first });
  const second = await objects.replace('state', Uint8Array.of(3), first);
  expect(await objects.replace('state', Uint8Array.of(4), first)).toBeUndefined();
  expect(await objects.getTagged('state')).toEqual({ bytes: Uint8Array.of(3), etag: second });
  await objects.deleteMany(['state']);
  // The object was deleted with its job and must not be created again.
  expect(await objects.replace('state', Uint8Array.of(5), second)).toBeUndefined();
  expect(await objects.getTagged('state')).toBeUndefined();
});

it('aborts the upload of a process that crashed', async () => {
  const objects = createObjectStore(storage.bucket);
  const notes = () => objects.list('uploads/', 10);
  const upload = await createNotedUpload(storage.bucket, 'crashed');
  const part = await upload.uploadPart(1, new Uint8Array(PART_BYTES));
  expect(await notes()).toHaveLength(1);
  const uploads: unknown[] = [];
  const answer = (isAbandoned: boolean) => async (key: string, begunAt: number) => {
    uploads.push([key, Math.abs(Date.now() - begunAt) < 60_000]);
    return isAbandoned;
  };
  expect(await objects.abortUploads(answer(false))).toBe(0);
  expect(await objects.abortUploads(answer(true))).toBe(1);
  expect(uploads).toEqual([
    ['crashed', true],
    ['crashed', true],
  ]);
  await expect(upload.complete([part])).rejects.toThrow();
  expect(await notes()).toEqual([]);
});

it('a sweep does not read the notes of uploads', async () => {
  let reads = 0;
  const counting = new Proxy(storage.bucket, {
    get(bucket, name: keyof R2Bucket) {
      if (name === 'get') reads++;
      return bucket[name].bind(bucket);
    },
  });
  const uploads = await Promise.all([1, 2, 3].map((n) => createNotedUpload(storage.bucket, `cut-off-${n}`)));
  const keys: string[] = [];
  const { abortUploads } = createObjectStore(counting);
  await abortUploads(async (key) => {
    keys.push(key);
    return false;
  });
  expect(keys.sort()).toEqual(['cut-off-1', 'cut-off-2', 'cut-off-3']);
  expect(await abortUploads(async () => true)).toBe(3);
  expect(reads).toBe(0);
  for (const upload of uploads) await expect(upload.uploadPart(1, new Uint8Array(1))).rejects.toThrow();
});

it('a completed upload has no note, and a sweep keeps its object', async () => {
  const objects = createObjectStore(storage.bucket);
  const text = Array.from({ length: 12 }, () => 'x'.repeat(1024 * 1024));
  await objects.putStream('over', text);
  await store('over-too', body(PART_BYTES + 1));
  await expect(store('never', body(3 * PART_BYTES, 2 * PART_BYTES))).rejects.toThrow('hung up');
  expect(await objects.list('uploads/', 10)).toEqual([]);
  expect(await objects.sizeBytes('over')).toBe(12 * 1024 * 1024);
  // The process crashed before it removed the note.
  const upload = await createNotedUpload(storage.bucket, 'noted');
  const [noteKey] = await objects.list('uploads/', 1);
  const note = (await objects.get(noteKey))!;
  await upload.complete([await upload.uploadPart(1, new Uint8Array(10))]);
  await objects.put(noteKey, note);
  expect(await objects.abortUploads(async () => true)).toBe(1);
  expect(await objects.sizeBytes('noted')).toBe(10);
});
