import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { migrate } from '../../../test/helpers/database.ts';
import { type startStorage, startStorageBefore } from '../../../test/helpers/storage.ts';
import { AS_OF_SQL, createMediaRows } from './media-rows.ts';

const TTL_MS = 48 * 3600_000;
const SLACK_MS = 2000;
const MIGRATION = '0008_former_names.sql';

let storage: Awaited<ReturnType<typeof startStorage>>;
beforeAll(async () => {
  storage = await startStorageBefore(MIGRATION);
  await insertReplacedByOldVersion('kept', 1000);
  await insertReplacedByOldVersion('kept', 5000);
  await storage.db
    .prepare('INSERT INTO media (account_id, name, object_key, created_at, expires_at) VALUES (?1, ?2, ?3, 1, ?4)')
    .bind('a', '#media/a/claimed', 'media/a/claimed', TTL_MS)
    .run();
  await migrate(storage.db, { from: MIGRATION });
});
afterAll(() => storage?.stop());

const rows = () => createMediaRows(storage.db);
const keyAt = async (name: string, asOf: number, accountId = 'a') =>
  (await rows().findAsOf(accountId, name, asOf, SLACK_MS))?.key;
const keyOf = (name: string, uploadedAt: number) => `media/a/${name}-${uploadedAt}`;

/** Inserts a replaced recording as versions without `former_name` did. */
async function insertReplacedByOldVersion(name: string, uploadedAt: number): Promise<void> {
  const key = keyOf(name, uploadedAt);
  await storage.db
    .prepare(
      'INSERT INTO media (account_id, name, object_key, size_bytes, created_at, expires_at) VALUES (?1, ?2, ?3, 1, ?4, ?5)',
    )
    .bind('a', `#${key}#${name}`, key, uploadedAt, uploadedAt + TTL_MS)
    .run();
}

async function publish(name: string, uploadedAt: number): Promise<void> {
  const key = keyOf(name, uploadedAt);
  await rows().claim('a', key, uploadedAt, uploadedAt + TTL_MS);
  await rows().publish('a', name, key, 1, uploadedAt, uploadedAt + TTL_MS);
}

describe('the recording that had a name at a time', () => {
  it('is the last upload until then, with a tolerance, even if it was replaced later', async () => {
    for (const uploadedAt of [10_000, 20_000, 30_000]) await publish('talk', uploadedAt);
    expect(await keyAt('talk', 7999)).toBeUndefined();
    expect(await keyAt('talk', 8000)).toBe(keyOf('talk', 10_000));
    expect(await keyAt('talk', 17_999)).toBe(keyOf('talk', 10_000));
    expect(await keyAt('talk', 20_000)).toBe(keyOf('talk', 20_000));
    expect(await keyAt('talk', 30_000 + TTL_MS - 1)).toBe(keyOf('talk', 30_000));
    expect(await keyAt('talk', 30_000 + TTL_MS)).toBeUndefined();
    expect(await keyAt('alk', 20_000)).toBeUndefined();
    expect(await keyAt('talk', 20_000, 'b')).toBeUndefined();
  });

  it('is the current one of two uploads in the same millisecond', async () => {
    await publish('at-once', 10_000);
    await rows().claim('a', 'media/a/second', 10_000, 10_000 + TTL_MS);
    await rows().publish('a', 'at-once', 'media/a/second', 1, 10_000, 10_000 + TTL_MS);
    expect(await keyAt('at-once', 10_000)).toBe('media/a/second');
  });

  it('is found if an earlier version replaced it, before or after the migration', async () => {
    expect(await keyAt('kept', 2000)).toBe(keyOf('kept', 1000));
    expect(await keyAt('kept', 6000)).toBe(keyOf('kept', 5000));
    await insertReplacedByOldVersion('kept', 9000);
    expect(await keyAt('kept', 9000)).toBe(keyOf('kept', 9000));
    await publish('kept', 20_000);
    expect(await keyAt('kept', 10_000)).toBe(keyOf('kept', 9000));
  });

  it('is not a row that was never replaced but whose name ends alike', async () => {
    const long = `${'x'.repeat(100)}/talk`;
    await publish(long, 40_000);
    const { results } = await storage.db
      .prepare(`SELECT former_name FROM media WHERE name IN ('#media/a/claimed', '${long}')`)
      .all();
    expect(results).toEqual([{ former_name: null }, { former_name: null }]);
  });
});

describe('with 50,000 replaced recordings of an account', () => {
  const REPLACED = 50_000;
  beforeAll(async () => {
    await storage.db
      .prepare(
        `INSERT INTO media (account_id, name, object_key, size_bytes, created_at, expires_at)
         WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
         SELECT 'a', '#k' || i || '#often' || (i % 2), 'k' || i, 1, i, i + ?2 FROM n`,
      )
      .bind(REPLACED, TTL_MS)
      .run();
  });

  it('a lookup uses the indexes', async () => {
    const { results } = await storage.db
      .prepare(`EXPLAIN QUERY PLAN ${AS_OF_SQL}`)
      .bind('a', 'often1', REPLACED, REPLACED)
      .all<{ detail: string }>();
    const searches = results.map(({ detail }) => detail).filter((detail) => detail.includes(' media '));
    expect(searches).toEqual([
      expect.stringMatching(/^SEARCH media USING INDEX sqlite_autoindex_media_1 \(account_id=\? AND name=\?\)/),
      expect.stringMatching(
        /^SEARCH media USING INDEX media_former_name \(account_id=\? AND former_name=\? AND created_at<\?\)/,
      ),
    ]);
  });

  it.each([
    ['now', REPLACED, `k${REPLACED - 1}`],
    ['an earlier time', REPLACED / 2, `k${REPLACED / 2 - 1}`],
    ['a time after all expired', REPLACED + TTL_MS, undefined],
  ])('a lookup reads only a few rows, as of %s', async (_, asOf, key) => {
    const { results, meta } = await storage.db
      .prepare(AS_OF_SQL)
      .bind('a', 'often1', asOf, asOf)
      .all<{ key: string }>();
    expect(results[0]?.key).toBe(key);
    expect(meta.rows_read).toBeLessThanOrEqual(10);
  });
});
