import { afterAll, beforeAll, expect, it } from 'vitest';
import { startStorage } from '../../../test/helpers/storage.ts';
import { createUsage, USAGE_SQL } from './usage-records.ts';

let storage: Awaited<ReturnType<typeof startStorage>>;
beforeAll(async () => {
  storage = await startStorage();
});
afterAll(() => storage?.stop());

const DAY = Date.parse('2026-03-01T00:00:00Z');
const HOUR_MS = 3600_000;

async function record(accountId: string, kind: string, billedSeconds: number, createdAt: number): Promise<void> {
  await storage.db
    .prepare('INSERT INTO usage_records (job_id, account_id, kind, billed_seconds, created_at) VALUES (?, ?, ?, ?, ?)')
    .bind(crypto.randomUUID(), accountId, kind, billedSeconds, createdAt)
    .run();
}

it('sums by UTC day and kind, from `from` up to `to`', async () => {
  await record('a', 'diarize', 20.1, DAY - 1);
  await record('a', 'diarize', 20.1, DAY);
  await record('a', 'diarize', 20.2, DAY + 24 * HOUR_MS - 1);
  await record('a', 'voiceprint', 0, DAY + HOUR_MS);
  await record('a', 'live', 60, DAY + 24 * HOUR_MS);
  await record('a', 'identify', 30, DAY + 48 * HOUR_MS);
  await record('b', 'diarize', 1000, DAY);
  const rows = await createUsage(storage.db).perDay('a', { from: DAY, to: DAY + 48 * HOUR_MS });
  expect(rows).toEqual([
    { date: '2026-03-01', kind: 'diarize', billedSeconds: 40.3, jobs: 2, voiceprints: 0 },
    { date: '2026-03-01', kind: 'voiceprint', billedSeconds: 0, jobs: 1, voiceprints: 1 },
    { date: '2026-03-02', kind: 'live', billedSeconds: 60, jobs: 1, voiceprints: 0 },
  ]);
});

it('reads the range of one account by the index', async () => {
  const { results } = await storage.db
    .prepare(`EXPLAIN QUERY PLAN ${USAGE_SQL}`)
    .bind('a', DAY, DAY)
    .all<{ detail: string }>();
  const plan = results.map(({ detail }) => detail).join('\n');
  expect(plan).toContain('USING INDEX usage_account (account_id=? AND created_at>? AND created_at<?)');
  expect(plan).not.toMatch(/SCAN usage/);
});
