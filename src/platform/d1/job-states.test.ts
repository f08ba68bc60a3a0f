import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startShards } from '../../../test/helpers/database.ts';
import { startStorage } from '../../../test/helpers/storage.ts';
import type { DiarizeRequest } from '../../contract/diarize.ts';
import type { CreateJob } from '../../jobs/app-services.ts';
import type { JobStore } from '../../jobs/job-store.ts';
import { createJobStore } from './job-rows.ts';

const NOW = 1_800_000_000_000;
const CANCELED = { code: 'canceled', message: 'The job was canceled.' };
let storage: Awaited<ReturnType<typeof startStorage>>;
let store: JobStore;
let made = 0;

beforeAll(async () => {
  storage = await startStorage();
  store = createJobStore(storage.db);
  for (const id of ['mine', 'theirs']) {
    await storage.db
      .prepare('INSERT INTO accounts (id, name, credit_seconds, created_at) VALUES (?1, ?1, 100000, 0)')
      .bind(id)
      .run();
  }
});
afterAll(() => storage?.stop());

const request = {
  url: 'https://example.com/a.wav',
  model: 'precision-2',
  webhook: 'https://example.com/hook',
  metadata: { call: '4711' },
} as unknown as DiarizeRequest;

async function runningJob(idempotency?: CreateJob['idempotency']): Promise<string> {
  const id = `job-${made++}`;
  await store.create({ accountId: 'mine', kind: 'diarize', request, idempotency, id, now: NOW });
  await startShards(store, id, { shardCount: 2, durationSeconds: 61.5 }, NOW + 1);
  return id;
}
const outboxIds = async (jobId: string) =>
  (await store.overdue(Number.POSITIVE_INFINITY, 100, { jobId })).rows.map((row) => row.id).sort();
const rowOf = (sql: string, id: string) => storage.db.prepare(sql).bind(id).first<Record<string, unknown>>();
const usageRows = async (id: string) =>
  (await rowOf('SELECT COUNT(*) AS rows FROM usage_records WHERE job_id = ?', id))?.rows;

describe('cancel', () => {
  it('ends the job, removes its steps, queues its webhook and bills nothing', async () => {
    const id = await runningJob();
    expect(await store.cancel(id, CANCELED, NOW + 2)).toBe(true);
    expect(await store.find(id)).toMatchObject({ status: 'canceled', error: CANCELED, updatedAt: NOW + 2 });
    expect(await outboxIds(id)).toEqual([`${id}/webhook`]);
    expect(await store.cancel(id, CANCELED, NOW + 3)).toBe(false);
    expect(await store.succeed(id, { outputKey: 'o', billedSeconds: 20, creditSeconds: 20 }, NOW + 4)).toBe(false);
    expect(await store.start(id, NOW + 5)).toBe(false);
    expect(await store.nextStep(id, ['analyse'], 'assemble', NOW + 6)).toBe(false);
    expect([await outboxIds(id), await usageRows(id)]).toEqual([[`${id}/webhook`], 0]);
  });

  it('of an ended job does not queue its webhook again', async () => {
    const id = await runningJob();
    await store.cancel(id, CANCELED, NOW + 2);
    await store.settle(`${id}/webhook`);
    expect(await store.cancel(id, CANCELED, NOW + 3)).toBe(false);
    expect(await store.fail(id, { code: 'x', message: 'x' }, NOW + 4)).toBe(false);
    expect(await store.succeed(id, { outputKey: 'o', billedSeconds: 20, creditSeconds: 20 }, NOW + 5)).toBe(false);
    expect(await outboxIds(id)).toEqual([]);
  });

  it('and a concurrent success end in exactly one of the two states', async () => {
    const seen = new Set<string>();
    for (let round = 0; round < 12; round++) {
      const id = await runningJob();
      const ends = [
        () => store.succeed(id, { outputKey: 'o', billedSeconds: 61.5, creditSeconds: 61.5 }, NOW + 3),
        () => store.cancel(id, CANCELED, NOW + 3),
      ];
      const outcomes = await Promise.all((round % 2 ? ends.reverse() : ends).map((end) => end()));
      expect(outcomes.filter(Boolean)).toHaveLength(1);
      const status = (await store.find(id))?.status ?? '';
      seen.add(status);
      expect(await usageRows(id)).toBe(status === 'succeeded' ? 1 : 0);
      expect(await outboxIds(id)).toEqual([`${id}/webhook`]);
    }
    expect([...seen].sort()).toEqual(['canceled', 'succeeded']);
  });
});

describe('remove', () => {
  it('keeps only a row without content, and no message', async () => {
    const id = await runningJob();
    expect(await store.remove('theirs', id, NOW + 2)).toBe(false);
    expect(await outboxIds(id)).toHaveLength(1);
    expect(await store.remove('mine', id, NOW + 2)).toBe(true);
    expect(await store.remove('mine', id, NOW + 3)).toBe(false);
    expect(await store.find(id)).toBeUndefined();
    expect(await outboxIds(id)).toEqual([]);
    const row = await rowOf('SELECT * FROM jobs WHERE id = ?', id);
    expect(row).toMatchObject({ status: 'canceled', request: '{}', deleted_at: NOW + 2, completed_at: NOW + 2 });
    for (const column of ['metadata', 'webhook_url', 'output_key', 'error_code', 'error_message', 'duration_seconds']) {
      expect([column, row?.[column]]).toEqual([column, null]);
    }
    expect(JSON.stringify(row)).not.toMatch(/example|4711/);
  });

  it('makes later steps of the job have no effect', async () => {
    const id = await runningJob();
    await store.remove('mine', id, NOW + 2);
    expect(await store.succeed(id, { outputKey: 'o', billedSeconds: 20, creditSeconds: 20 }, NOW + 3)).toBe(false);
    expect(await store.fail(id, { code: 'x', message: 'x' }, NOW + 3)).toBe(false);
    expect(await store.nextStep(id, ['analyse'], 'assemble', NOW + 3)).toBe(false);
    expect(await store.unfinished([id])).toEqual(new Set());
    expect([await outboxIds(id), await usageRows(id)]).toEqual([[], 0]);
  });

  it('keeps the usage of a success and drops its webhook', async () => {
    const id = await runningJob();
    await store.succeed(id, { outputKey: 'o', billedSeconds: 61.5, creditSeconds: 61.5 }, NOW + 2);
    await store.remove('mine', id, NOW + 3);
    expect([await outboxIds(id), await usageRows(id)]).toEqual([[], 1]);
    expect(await rowOf('SELECT status, completed_at FROM jobs WHERE id = ?', id)).toEqual({
      status: 'succeeded',
      completed_at: NOW + 2,
    });
  });

  it('frees the idempotency key for a new job', async () => {
    const key = { key: 'again', bodyHash: 'h' };
    const first = await runningJob(key);
    await store.remove('mine', first, NOW + 2);
    const second = await runningJob(key);
    expect(await store.find(second)).toMatchObject({ id: second, status: 'running' });
    const replay = await store.create({
      accountId: 'mine',
      kind: 'diarize',
      request,
      idempotency: key,
      id: 'x',
      now: NOW + 3,
    });
    expect(replay).toMatchObject({ ok: true, value: { id: second } });
  });

  it('does not make concurrent calls with the same key fail', async () => {
    const key = { key: 'race', bodyHash: 'h' };
    for (let round = 0; round < 5; round++) {
      const old = await runningJob(key);
      const create = (n: number) =>
        store.create({
          accountId: 'mine',
          kind: 'diarize',
          request,
          idempotency: key,
          id: `race-${round}-${n}`,
          now: NOW,
        });
      const [, ...created] = await Promise.all([store.remove('mine', old, NOW + 2), create(1), create(2), create(3)]);
      expect(created.every((result) => result.ok)).toBe(true);
      for (const result of created) if (result.ok) await store.remove('mine', result.value.id, NOW + 3);
    }
  });

  it('lists the job for the sweep until it is marked as cleaned', async () => {
    const known = (await store.deleted(1000)).map((job) => job.id);
    await store.markCleaned(known, NOW);
    const [a, b] = [await runningJob(), await runningJob()];
    await store.remove('mine', b, NOW + 2);
    await store.remove('mine', a, NOW + 3);
    expect(await store.deleted(10)).toEqual([
      { id: b, deletedAt: NOW + 2 },
      { id: a, deletedAt: NOW + 3 },
    ]);
    await store.markCleaned([b], NOW);
    expect(await store.deleted(10)).toEqual([{ id: a, deletedAt: NOW + 3 }]);
  });
});
