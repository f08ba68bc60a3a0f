import { afterAll, beforeAll, expect, it } from 'vitest';
import { startStorage } from '../../test/helpers/storage.ts';
import { createJobStore } from './d1/job-rows.ts';
import { createMediaService, MEDIA_TTL_MS } from './media-store.ts';

const HOUR_MS = 3600_000;
const BUCKET_URL = 'https://0123456789abcdef0123456789abcdef.r2.cloudflarestorage.com/rollcall';
let storage: Awaited<ReturnType<typeof startStorage>>;
/** Offset of the service's clock. Objects have the real time, because the bucket stamps them. */
let laterMs = 0;
beforeAll(async () => {
  storage = await startStorage();
  for (const id of ['a', 'b']) {
    await storage.db.prepare('INSERT INTO accounts (id, name, created_at) VALUES (?1, ?1, 0)').bind(id).run();
  }
});
afterAll(() => storage?.stop());

const service = (direct = true) =>
  createMediaService({
    db: storage.db,
    bucket: storage.bucket,
    signingKey: Buffer.alloc(32, 5).toString('base64'),
    s3: direct ? { bucketUrl: BUCKET_URL, accessKeyId: 'key', secretAccessKey: 'secret', region: 'auto' } : undefined,
    now: () => Date.now() + laterMs,
  });
const address = async (accountId: string, name: string) =>
  (await service().createUpload(accountId, name, 'https://example.com')).url;
const keyOf = (url: string) => decodeURIComponent(url.slice(BUCKET_URL.length + 1).split('?')[0]);
/** Stores an object as a PUT to a presigned URL does. */
const put = async (url: string, content: string) => {
  await new Promise((wake) => setTimeout(wake, 5)); // times of objects are whole milliseconds
  return storage.bucket.put(keyOf(url), content);
};
const contentOf = async (accountId: string, name: string) => {
  const found = await service().resolve(accountId, name);
  return found && (await storage.bucket.get(found.key))?.text();
};

it('returns a URL of the bucket without Content-Type and without the name', async () => {
  const url = await address('a', 'board/very-secret');
  expect(url.startsWith(`${BUCKET_URL}/media/a/`)).toBe(true);
  expect(new URL(url).searchParams.get('X-Amz-SignedHeaders')).toBe('host');
  expect(Number(new URL(url).searchParams.get('X-Amz-Expires'))).toBeGreaterThanOrEqual(3600);
  expect(url).not.toMatch(/secret|board/);
});

it('finds direct uploads to the bucket, in their account only', async () => {
  const url = await address('a', 'talk');
  expect(await service().resolve('a', 'talk')).toBeUndefined();
  const object = await put(url, 'abc');
  expect(await service().resolve('a', 'talk')).toMatchObject({ key: keyOf(url), sizeBytes: 3, etag: object?.etag });
  expect(await service().resolve('b', 'talk')).toBeUndefined();
  expect(await service().resolve('a', 'tal')).toBeUndefined();
});

it('resolves a name to its latest upload, whichever URL was used', async () => {
  const [first, second] = [await address('a', 'twice'), await address('a', 'twice')];
  expect(keyOf(first)).not.toBe(keyOf(second));
  await put(second, 'second');
  expect(await contentOf('a', 'twice')).toBe('second');
  await put(first, 'first');
  expect(await contentOf('a', 'twice')).toBe('first');
  await put(second, 'again');
  expect(await contentOf('a', 'twice')).toBe('again');
});

it('resolves a name to the later of an upload to the bucket and one through the Worker', async () => {
  const direct = await address('b', 'both');
  const { url } = await service(false).createUpload('b', 'both', 'https://example.com');
  const throughWorker = async (content: string) => {
    await new Promise((wake) => setTimeout(wake, 5));
    const found = await service().findUpload(url.split('/').pop() ?? '');
    if (found.ok) await found.value.store(new Blob([content]).stream(), undefined);
  };
  await put(direct, 'direct');
  await throughWorker('worker');
  expect(await contentOf('b', 'both')).toBe('worker');
  await put(direct, 'direct again');
  expect(await contentOf('b', 'both')).toBe('direct again');
});

it('expires 48 hours after the upload, and is then swept even if it was never used', async () => {
  const [used, unused] = [await address('a', 'used'), await address('a', 'unused')];
  for (const url of [used, unused]) await put(url, 'x');
  const store = createJobStore(storage.db);
  const due = async () => store.expiredMedia(Date.now() + laterMs, 100);
  try {
    laterMs = MEDIA_TTL_MS - 60_000;
    expect(await service().resolve('a', 'used')).toBeDefined();
    laterMs = MEDIA_TTL_MS + 60_000;
    expect(await service().resolve('a', 'used')).toBeUndefined();
    expect(await service().resolve('a', 'used', Date.now() + MEDIA_TTL_MS - 60_000)).toBeDefined();
    expect(await service().createDownload('a', 'used', 'https://example.com')).toBeUndefined();
    // A URL is valid for two hours, so that its object may be two hours newer.
    expect(await due()).not.toContain(keyOf(unused));
    laterMs = MEDIA_TTL_MS + 2 * HOUR_MS + 60_000;
    expect(await due()).toEqual(expect.arrayContaining([keyOf(used), keyOf(unused)]));
  } finally {
    laterMs = 0;
  }
});

it('returns download URLs that expire with the recording', async () => {
  await put(await address('a', 'short'), 'x');
  const ttl = async () => {
    const found = await service().createDownload('a', 'short', 'https://example.com');
    return Number(new URL(found?.url ?? '').searchParams.get('X-Amz-Expires'));
  };
  expect(await ttl()).toBe(7200);
  try {
    laterMs = MEDIA_TTL_MS - 600_000;
    expect(await ttl()).toBeLessThanOrEqual(600);
  } finally {
    laterMs = 0;
  }
});
