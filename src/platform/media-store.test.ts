import { afterAll, beforeAll, expect, it } from 'vitest';
import { startStorage } from '../../test/helpers/storage.ts';
import { createMediaService, MEDIA_TTL_MS, presign } from './media-store.ts';

let storage: Awaited<ReturnType<typeof startStorage>>;
let now = 1_760_000_000_000;
beforeAll(async () => {
  storage = await startStorage();
  for (const id of ['a', 'b']) {
    await storage.db.prepare('INSERT INTO accounts (id, name, created_at) VALUES (?1, ?1, 0)').bind(id).run();
  }
});
afterAll(() => storage?.stop());

const service = () =>
  createMediaService({
    db: storage.db,
    bucket: storage.bucket,
    signingKey: Buffer.alloc(32, 5).toString('base64'),
    now: () => now,
  });
async function upload(accountId: string, name: string, content: string) {
  const { url } = await service().createUpload(accountId, name, 'https://example.com');
  const found = await service().findUpload(url.split('/').pop() ?? '');
  return found.ok ? found.value.store(new Blob([content]).stream(), undefined) : found;
}

it('finds a recording under its name in its account only', async () => {
  expect(await upload('a', 'talk', 'abc')).toEqual({ ok: true, value: { sizeBytes: 3 } });
  const found = await service().resolve('a', 'talk');
  expect(found).toMatchObject({ sizeBytes: 3 });
  expect(await (await storage.bucket.get(found?.key ?? ''))?.text()).toBe('abc');
  expect(await service().resolve('b', 'talk')).toBeUndefined();
  expect(await service().resolve('a', 'other')).toBeUndefined();
});

it('does not resolve a name to an upload that was replaced', async () => {
  await upload('a', 'twice', 'first');
  const first = await service().resolve('a', 'twice');
  await upload('a', 'twice', 'second');
  expect((await service().resolve('a', 'twice'))?.key).not.toBe(first?.key);
  expect(await storage.bucket.head(first?.key ?? '')).not.toBeNull();
  const { results } = await storage.db.prepare('SELECT name FROM media WHERE object_key = ?1').bind(first?.key).all();
  expect(results).toEqual([{ name: `#${first?.key}#twice` }]);
});

it('resolves a name as of the time at which the job was created', async () => {
  await upload('a', 'again', 'first');
  const accepted = now;
  now += 5000;
  await upload('a', 'again', 'second, longer');
  expect(await service().resolve('a', 'again', accepted)).toMatchObject({ sizeBytes: 5 });
  expect(await service().resolve('a', 'again')).toMatchObject({ sizeBytes: 14 });
  // A small difference of clocks is tolerated.
  expect(await service().resolve('a', 'again', accepted + 4000)).toMatchObject({ sizeBytes: 14 });
  // Without an upload at that time, the current one counts. Names with the same ending do not match.
  expect(await service().resolve('a', 'again', accepted - 5000)).toMatchObject({ sizeBytes: 14 });
  expect(await service().resolve('a', 'gain', accepted)).toBeUndefined();
  expect(await service().resolve('b', 'again', accepted)).toBeUndefined();
});

it('does not resolve an upload after 48 hours, even before a sweep', async () => {
  await upload('a', 'old', 'abc');
  now += MEDIA_TTL_MS - 1;
  expect(await service().resolve('a', 'old')).toBeDefined();
  now += 1;
  expect(await service().resolve('a', 'old')).toBeUndefined();
});

it('resolves an expired upload for a job that was created before', async () => {
  await upload('a', 'queued', 'abc');
  const acceptedAt = now + MEDIA_TTL_MS - 1;
  now += MEDIA_TTL_MS + 1000;
  expect(await service().resolve('a', 'queued', acceptedAt)).toMatchObject({ sizeBytes: 3 });
  expect(await service().resolve('a', 'queued', acceptedAt + 1)).toBeUndefined();
  expect(await service().resolve('a', 'queued')).toBeUndefined();
});

it('refuses an expired ticket and one of an unknown account', async () => {
  const find = async (url: string) => service().findUpload(url.split('/').pop() ?? '');
  const { url: unknownAccount } = await service().createUpload('unknown', 'talk', 'https://example.com');
  expect(await find(unknownAccount)).toEqual({ ok: false, error: { kind: 'bad_ticket' } });
  const { url } = await service().createUpload('a', 'late', 'https://example.com');
  now += 2 * 3600 * 1000 + 1000;
  expect(await find(url)).toEqual({ ok: false, error: { kind: 'expired_ticket' } });
});

it('returns the account of an upload and its rate limits', async () => {
  const { url } = await service().createUpload('b', 'counted', 'https://example.com');
  const limits = async () => {
    const found = await service().findUpload(url.split('/').pop() ?? '');
    return found.ok && { accountId: found.value.accountId, ...found.value.rateLimits };
  };
  expect(await limits()).toEqual({ accountId: 'b', post: 100, get: 300 });
  await storage.db.prepare("UPDATE accounts SET post_limit = 7 WHERE id = 'b'").run();
  expect(await limits()).toEqual({ accountId: 'b', post: 7, get: 300 });
});

it('keeps no row of a refused upload', async () => {
  expect(await upload('b', 'empty', '')).toEqual({ ok: false, error: { kind: 'empty' } });
  const { results } = await storage.db.prepare("SELECT * FROM media WHERE account_id = 'b'").all();
  expect(results).toEqual([]);
});

/** Credentials and time of the example in the documentation of AWS Signature Version 4. */
const EXAMPLE = {
  bucketUrl: 'https://examplebucket.s3.amazonaws.com',
  accessKeyId: 'AKIAIOSFODNN7EXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
  region: 'us-east-1',
};
const EXAMPLE_MS = Date.UTC(2013, 4, 24);

it('signs the published example as AWS does', async () => {
  const url = new URL(await presign(EXAMPLE, { method: 'GET', key: 'test.txt', expiresSeconds: 86400 }, EXAMPLE_MS));
  expect(Object.fromEntries(url.searchParams)).toEqual({
    'X-Amz-Algorithm': 'AWS4-HMAC-SHA256',
    'X-Amz-Credential': 'AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request',
    'X-Amz-Date': '20130524T000000Z',
    'X-Amz-Expires': '86400',
    'X-Amz-SignedHeaders': 'host',
    'X-Amz-Signature': 'aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404',
  });
});

it('binds the signature to method, key and time, and to no Content-Type', async () => {
  const sign = async (method: 'GET' | 'PUT', key: string, now = EXAMPLE_MS) => {
    const url = new URL(await presign(EXAMPLE, { method, key, expiresSeconds: 7200 }, now));
    expect(url.searchParams.get('X-Amz-SignedHeaders')).toBe('host');
    return url.searchParams.get('X-Amz-Signature');
  };
  const signatures = [
    await sign('GET', 'a/b'),
    await sign('PUT', 'a/b'),
    await sign('PUT', 'a/c'),
    await sign('PUT', 'a/b', EXAMPLE_MS + 1000),
  ];
  expect(new Set(signatures).size).toBe(4);
});
