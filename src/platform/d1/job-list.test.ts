import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startStorage } from '../../../test/helpers/storage.ts';
import type { ListedJob } from '../../jobs/job-store.ts';
import { listJobs, listSql } from './job-rows.ts';

const JOBS = 10_000;
let storage: Awaited<ReturnType<typeof startStorage>>;

/**
 * Ten thousand jobs of each of two accounts, with two jobs per account and millisecond. Every fifth has failed, every
 * tenth is deleted.
 */
beforeAll(async () => {
  storage = await startStorage();
  for (const account of ['mine', 'theirs']) {
    await storage.db
      .prepare('INSERT INTO accounts (id, name, subscribed, created_at) VALUES (?1, ?1, 1, 0)')
      .bind(account)
      .run();
    await storage.db
      .prepare(
        `WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?2 - 1)
         INSERT INTO jobs (id, account_id, kind, status, request, created_at, updated_at, deleted_at)
         SELECT printf('%s-%05d', ?1, n), ?1, 'diarize', iif(n % 5 = 0, 'failed', 'succeeded'), '{}', 1000 + n / 2, 0,
           iif(n % 10 = 9, 1, NULL)
         FROM numbers`,
      )
      .bind(account, JOBS)
      .run();
  }
});
afterAll(() => storage?.stop());

async function readAll(status?: 'failed'): Promise<string[]> {
  const ids: string[] = [];
  let after: ListedJob | undefined;
  for (;;) {
    const page = await listJobs(storage.db, 'mine', { status, after, limit: 100 });
    ids.push(...page.map(({ id }) => id));
    after = page.at(-1);
    if (page.length < 100) return ids;
  }
}

const expected = (keep: (n: number) => boolean) =>
  Array.from({ length: JOBS }, (_, n) => n)
    .filter((n) => n % 10 !== 9 && keep(n))
    .map((n) => `mine-${String(n).padStart(5, '0')}`)
    .reverse();

describe('the list of jobs of an account', () => {
  it('has every job once, newest first, without the deleted ones', async () => {
    expect(await readAll()).toEqual(expected(() => true));
    expect(await readAll('failed')).toEqual(expected((n) => n % 5 === 0));
  });

  it.each([
    ['jobs_list', false],
    ['jobs_list_status', true],
  ])('uses the index %s without sorting', async (index, withStatus) => {
    const values = ['mine', 5000, 'mine-05000', 10, ...(withStatus ? ['failed'] : [])];
    const { results } = await storage.db
      .prepare(`EXPLAIN QUERY PLAN ${listSql(withStatus)}`)
      .bind(...values)
      .all<{ detail: string }>();
    const plan = results.map(({ detail }) => detail);
    expect(plan).toHaveLength(1);
    expect(plan[0]).toMatch(new RegExp(`^SEARCH jobs USING (COVERING )?INDEX ${index} \\(account_id=\\? AND .*<`));
  });

  it('reads only the rows of the page, at any position', async () => {
    for (const n of [9998, 5000, 200]) {
      const { meta } = await storage.db
        .prepare(listSql(true))
        .bind('mine', 1000 + n / 2, `mine-${n}`, 10, 'failed')
        .all();
      expect(meta.rows_read).toBeLessThanOrEqual(20);
    }
  });
});
