import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { migrate, startShards } from '../../../test/helpers/database.ts';
import { startStorage, startStorageBefore } from '../../../test/helpers/storage.ts';
import type { DiarizeRequest } from '../../contract/diarize.ts';
import { billOf } from '../../jobs/end-job.ts';
import type { JobStep } from '../../jobs/job-messages.ts';
import type { JobStore, OutboxPosition } from '../../jobs/job-store.ts';
import { createJobStore } from './job-rows.ts';

const NOW = 1_800_000_000_000;
let storage: Awaited<ReturnType<typeof startStorage>>;
let store: JobStore;
let made = 0;

beforeAll(async () => {
  storage = await startStorage();
  store = createJobStore(storage.db);
});
afterAll(() => storage.stop());

let accountId: string;
beforeEach(async () => {
  accountId = `account-${made++}`;
  await storage.db
    .prepare('INSERT INTO accounts (id, name, credit_seconds, created_at) VALUES (?, ?, 100, 0)')
    .bind(accountId, accountId)
    .run();
});

function request(extra: Partial<DiarizeRequest> = {}) {
  const base = { url: 'https://example.com/a.wav', model: 'precision-2' } as DiarizeRequest;
  return { accountId, kind: 'diarize' as const, request: { ...base, ...extra } };
}

async function runningJob(shardCount = 2, extra: Partial<DiarizeRequest> = {}): Promise<string> {
  const id = `job-${made++}`;
  await store.create({ ...request(extra), id, now: NOW });
  await startShards(store, id, { shardCount, durationSeconds: 61.5 }, NOW + 1);
  return id;
}

const outboxIds = async (jobId: string) => {
  const { rows } = await store.overdue(Number.POSITIVE_INFINITY, 100, { jobId });
  return rows.map((row) => row.id).sort();
};

const rowOf = (sql: string, ...values: unknown[]) =>
  storage.db
    .prepare(sql)
    .bind(...values)
    .first<Record<string, number>>();

describe('job store', () => {
  it('stores a job and its first message together', async () => {
    const id = `job-${made++}`;
    const created = await store.create({ ...request({ webhook: 'https://example.com/hook' }), id, now: NOW });
    expect(created.ok && created.value).toMatchObject({
      id,
      status: 'created',
      webhookUrl: 'https://example.com/hook',
    });
    expect(await outboxIds(id)).toEqual([`${id}/ingest`]);
    expect(await store.findOwned('another-account', id)).toBeUndefined();
  });

  it('moves one outbox row from step to step, each move once', async () => {
    const id = `job-${made++}`;
    await store.create({ ...request(), id, now: NOW });
    await store.start(id, NOW);
    const job = (await store.find(id))!;
    const finished = await Promise.all(
      [1, 2, 3].map(() => store.finishIngest(job, { shardCount: 4, durationSeconds: 61.5 }, NOW + 3)),
    );
    expect(finished.filter(Boolean)).toHaveLength(1);
    expect(await outboxIds(id)).toEqual([`${id}/analyse`]);
    expect(await store.find(id)).toMatchObject({ shardCount: 4, durationSeconds: 61.5 });
    const move = (from: JobStep, to: JobStep) => store.nextStep(id, [from], to, NOW + 4);
    expect([await move('ingest', 'assemble'), await outboxIds(id)]).toEqual([false, [`${id}/analyse`]]);
    const moved = await Promise.all([1, 2, 3].map(() => move('analyse', 'assemble')));
    expect(moved.filter(Boolean)).toHaveLength(1);
    expect([await move('assemble', 'transcribe'), await outboxIds(id)]).toEqual([true, [`${id}/transcribe`]]);
    await store.cancel(id, { code: 'canceled', message: '' }, NOW + 5);
    expect([await move('transcribe', 'ingest'), await outboxIds(id)]).toEqual([false, []]);
    expect(await store.finishIngest(job, { shardCount: 1, durationSeconds: 5 }, NOW + 5)).toBe(false);
  });

  const begin = (id: string, now: number) => store.begin({ step: 'ingest', jobId: id }, now + 60_000, now);

  it('counts the starts of a step and resets them at a hand-over', async () => {
    const id = `job-${made++}`;
    await store.create({ ...request(), id, now: NOW });
    expect(await begin(id, NOW)).toMatchObject({ starts: 1, job: { id } });
    expect(await begin(id, NOW)).toMatchObject({ starts: 2 });
    await store.handOver(`${id}/ingest`, NOW + 5000);
    expect(await store.outboxRow(`${id}/ingest`)).toMatchObject({ starts: 0, leaseUntil: NOW + 5000 });
    expect(await begin('unknown', NOW)).toBeUndefined();
  });

  it('makes growing pauses between the starts of a crashing step, about an hour in all', async () => {
    const id = `job-${made++}`;
    await store.create({ ...request(), id, now: NOW });
    const pauses: number[] = [];
    let now = NOW;
    for (let starts = 1; starts <= 10; starts++) {
      expect(await begin(id, now)).toMatchObject({ starts });
      const { dueAt } = (await store.outboxRow(`${id}/ingest`))!;
      pauses.push((dueAt - now) / 1000);
      now = dueAt;
    }
    expect(pauses).toEqual([0, 15, 30, 60, 120, 240, 480, 900, 900, 900]);
  });

  it('does not count a forgiven start, and begins the step only when it is due', async () => {
    const id = `job-${made++}`;
    await store.create({ ...request(), id, now: NOW });
    await begin(id, NOW);
    await store.putBack(`${id}/ingest`, NOW + 5000, true);
    expect(await begin(id, NOW + 4000)).toMatchObject({ starts: 0, pauseSeconds: 1 });
    expect(await begin(id, NOW + 5000)).toMatchObject({ starts: 1 });
  });

  it('creates one job for concurrent calls with one idempotency key, and refuses another body', async () => {
    const calls = Array.from({ length: 20 }, (_, call) =>
      store.create({
        ...request(),
        id: `race-${accountId}-${call}`,
        now: NOW,
        idempotency: { key: 'k', bodyHash: 'h' },
      }),
    );
    const ids = new Set((await Promise.all(calls)).map((result) => result.ok && result.value.id));
    expect(ids.size).toBe(1);
    expect(await rowOf('SELECT COUNT(*) AS jobs FROM jobs WHERE account_id = ?', accountId)).toEqual({ jobs: 1 });
    const other = await store.create({ ...request(), id: 'x', now: NOW, idempotency: { key: 'k', bodyHash: 'other' } });
    expect(other).toEqual({ ok: false, error: { kind: 'idempotency_conflict' } });
    const dayLater = { ...request(), id: `later-${accountId}`, now: NOW + 24 * 3600 * 1000 };
    const fresh = await store.create({ ...dayLater, idempotency: { key: 'k', bodyHash: 'other' } });
    expect(fresh).toMatchObject({ ok: true, value: { id: `later-${accountId}` } });
  });

  it('starts a job once, with one message for all shards', async () => {
    const id = await runningJob(3);
    expect(await outboxIds(id)).toEqual([`${id}/analyse`]);
    expect(await store.start(id, NOW + 2)).toBe(false);
    expect(await store.find(id)).toMatchObject({ status: 'running', shardCount: 3, updatedAt: NOW + 1 });
  });

  it('bills a success once even if it is reported several times', async () => {
    const id = await runningJob(1, { webhook: 'https://example.com/hook' });
    const outcomes = await Promise.all(
      [10, 10, 11, 12].map((later) =>
        store.succeed(id, { outputKey: 'o', billedSeconds: 61.5, creditSeconds: 61.5 }, NOW + later),
      ),
    );
    expect(outcomes.filter(Boolean)).toHaveLength(1);
    expect(await rowOf('SELECT COUNT(*) AS rows FROM usage_records WHERE job_id = ?', id)).toEqual({ rows: 1 });
    expect(await rowOf('SELECT credit_seconds FROM accounts WHERE id = ?', accountId)).toEqual({
      credit_seconds: 38.5,
    });
    expect(await outboxIds(id)).toEqual([`${id}/webhook`]);
  });

  it('does not charge credit to a subscribed account', async () => {
    await storage.db.prepare('UPDATE accounts SET subscribed = 1 WHERE id = ?').bind(accountId).run();
    const id = await runningJob();
    await store.succeed(id, { outputKey: 'o', billedSeconds: 61.5, creditSeconds: 61.5 }, NOW + 3);
    expect(await rowOf('SELECT credit_seconds FROM accounts WHERE id = ?', accountId)).toEqual({ credit_seconds: 100 });
    expect(await rowOf('SELECT billed_seconds FROM usage_records WHERE job_id = ?', id)).toEqual({
      billed_seconds: 61.5,
    });
  });

  it('bills a voiceprint at its price in credit', async () => {
    const id = `job-${made++}`;
    await store.create({ ...request(), kind: 'voiceprint', id, now: NOW });
    await startShards(store, id, { shardCount: 1, durationSeconds: 12 }, NOW + 1);
    await store.succeed(id, { outputKey: 'o', ...billOf('voiceprint', 12) }, NOW + 3);
    expect(await rowOf('SELECT kind, billed_seconds FROM usage_records WHERE job_id = ?', id)).toEqual({
      kind: 'voiceprint',
      billed_seconds: 0,
    });
    expect(await rowOf('SELECT credit_seconds FROM accounts WHERE id = ?', accountId)).toEqual({ credit_seconds: 80 });
  });

  it('never changes a terminal state and never bills a failed job', async () => {
    const id = await runningJob(1, { webhook: 'https://example.com/hook' });
    expect(await store.fail(id, { code: 'no_speech', message: 'No speech.' }, NOW + 2)).toBe(true);
    expect(await store.fail(id, { code: 'other', message: 'Other.' }, NOW + 3)).toBe(false);
    expect(await store.succeed(id, { outputKey: 'o', billedSeconds: 20, creditSeconds: 20 }, NOW + 4)).toBe(false);
    expect(await store.find(id)).toMatchObject({
      status: 'failed',
      error: { code: 'no_speech', message: 'No speech.' },
    });
    expect(await rowOf('SELECT COUNT(*) AS rows FROM usage_records WHERE job_id = ?', id)).toEqual({ rows: 0 });
    expect(await outboxIds(id)).toEqual([`${id}/webhook`]);
  });

  it('returns messages whose lease has ended', async () => {
    const id = await runningJob(1);
    const rowId = `${id}/analyse`;
    const overdue = async (before: number) => (await store.overdue(before, 10, { jobId: id })).rows;
    await store.renewLeases([
      { id: rowId, leaseUntil: NOW + 5000 },
      { id: 'unknown', leaseUntil: NOW },
    ]);
    expect(await overdue(NOW + 5000)).toEqual([]);
    const [row] = await overdue(NOW + 5001);
    expect(row).toMatchObject({ id: rowId, message: { step: 'analyse', jobId: id } });
    await store.renewLease(rowId, NOW + 9000);
    expect(await overdue(NOW + 5001)).toEqual([]);
    await store.renewLeases([]);
  });

  it('pages through messages with equal leases and unreadable messages', async () => {
    const id = `job-${made++}`;
    const insert = `INSERT INTO outbox (id, job_id, queue, body, due_at, lease_until) VALUES (?, ?, 'jobs', ?, 0, 0)`;
    const body = JSON.stringify({ step: 'assemble', jobId: id });
    for (let i = 0; i < 4; i++) await storage.db.prepare(insert).bind(`${id}/unreadable/${i}`, id, '{').run();
    for (let i = 0; i < 7; i++) await storage.db.prepare(insert).bind(`${id}/step/${i}`, id, body).run();
    const pages: string[][] = [];
    let after: OutboxPosition | undefined;
    do {
      const page = await store.overdue(Number.POSITIVE_INFINITY, 3, { jobId: id, after });
      pages.push(page.rows.map((row) => row.id));
      after = page.next;
    } while (after && pages.length < 20);
    expect(pages.flat()).toEqual(Array.from({ length: 7 }, (_, i) => `${id}/step/${i}`));
    await storage.db.prepare('DELETE FROM outbox WHERE job_id = ?').bind(id).run();
  });

  it('skips unreadable messages of other versions', async () => {
    const id = await runningJob();
    const insert = `INSERT INTO outbox (id, job_id, queue, body, due_at, lease_until) VALUES (?, ?, 'jobs', ?, 0, -1)`;
    for (const [name, body] of [
      ['next', '{"step":"next"}'],
      ['broken', '{'],
    ]) {
      await storage.db.prepare(insert).bind(`${id}/${name}`, id, body).run();
    }
    const readable = [`${id}/analyse`];
    expect(await outboxIds(id)).toEqual(readable);
    const first = await store.overdue(NOW + 1e9, 1);
    expect(first.rows.map((row) => row.id)).not.toContain(`${id}/next`);
    expect(await outboxIds(id)).toEqual(readable);
  });

  it('queues a new ingest for a job with shard messages of an earlier version', async () => {
    const id = await runningJob();
    await storage.db.prepare('DELETE FROM outbox WHERE job_id = ?').bind(id).run();
    const insert = `INSERT INTO outbox (id, job_id, queue, body, due_at, lease_until) VALUES (?, ?, 'jobs', ?, 0, 0)`;
    for (const shard of [0, 1]) {
      const body = JSON.stringify({ step: 'shard', jobId: id, shard });
      await storage.db.prepare(insert).bind(`${id}/shard/${shard}`, id, body).run();
    }
    const { rows } = await store.overdue(Number.POSITIVE_INFINITY, 10, { jobId: id });
    expect(rows[0]).toMatchObject({ id: `${id}/ingest`, message: { step: 'ingest', jobId: id } });
    expect(await outboxIds(id)).toEqual([`${id}/ingest`]);
  });

  it('finds the job of an idempotency key for a day', async () => {
    const id = `job-${made++}`;
    await store.create({ ...request(), id, now: NOW, idempotency: { key: 'k', bodyHash: 'h' } });
    const day = 24 * 3600 * 1000;
    expect(await store.findReplay(accountId, 'k', NOW + day - 1)).toEqual({ jobId: id, bodyHash: 'h' });
    expect(await store.findReplay(accountId, 'k', NOW + day)).toBeUndefined();
    expect(await store.findReplay('another-account', 'k', NOW)).toBeUndefined();
  });

  it('creates a new job for an expired idempotency key, even if the first write fails', async () => {
    const idempotency = { key: 'old', bodyHash: 'h' };
    const day = 24 * 3600 * 1000;
    const [old, fresh] = [`job-${made++}`, `job-${made++}`];
    await store.create({ ...request(), id: old, now: NOW, idempotency });
    let failures = 1;
    const db = new Proxy(storage.db, {
      get(target, name) {
        if (name === 'batch' && failures-- > 0) return () => Promise.reject(new Error('Network connection lost.'));
        const value = Reflect.get(target, name, target);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
    const created = await createJobStore(db).create({ ...request(), id: fresh, now: NOW + day + 1, idempotency });
    expect(created).toMatchObject({ ok: true, value: { id: fresh } });
  });

  it('does not list deleted jobs as expired', async () => {
    const id = await runningJob();
    await store.remove(accountId, id, NOW + 2);
    expect((await store.expired(NOW + 1e9, 1000)).map((job) => job.id)).not.toContain(id);
  });

  it('lists expired outputs until they are marked as cleaned', async () => {
    const id = await runningJob(1);
    await store.succeed(id, { outputKey: `outputs/${id}`, billedSeconds: 20, creditSeconds: 20 }, 1000);
    expect(await store.expired(999, 10)).toEqual([]);
    expect(await store.expired(1000, 10)).toEqual([{ id, outputKey: `outputs/${id}` }]);
    await store.markCleaned([id], NOW);
    expect(await store.expired(1000, 10)).toEqual([]);
  });

  it('deletes the URLs of a job, which may contain secrets, with its output', async () => {
    const webhook = 'https://example.com/hook?token=SECRET';
    const url = 'https://example.com/a.wav?signature=SECRET';
    const [done, waiting] = [await runningJob(1, { url, webhook }), await runningJob(1, { url, webhook })];
    const outcome = { outputKey: 'outputs/x', billedSeconds: 20, creditSeconds: 20 };
    for (const id of [done, waiting]) await store.succeed(id, outcome, 1000);
    for (const id of await outboxIds(done)) await store.settle(id);
    await store.markCleaned([done, waiting], NOW);
    const text = JSON.stringify(await rowOf('SELECT * FROM jobs WHERE id = ?', done));
    expect(text).toContain(done);
    expect(text).not.toContain('SECRET');
    expect((await store.find(done))?.request.model).toBe('precision-2');
    // Its webhook has not been delivered yet.
    expect(await outboxIds(waiting)).toHaveLength(1);
    expect((await store.find(waiting))?.webhookUrl).toBe(webhook);
    expect((await store.find(waiting))?.request.url).toBeUndefined();
    for (const id of await outboxIds(waiting)) await store.settle(id);
    expect(JSON.stringify(await rowOf('SELECT * FROM jobs WHERE id = ?', waiting))).not.toContain('SECRET');
  });

  it('finds the unfinished among ended and unknown jobs', async () => {
    const [active, ended] = [await runningJob(), await runningJob()];
    await store.fail(ended, { code: 'x', message: 'x' }, NOW);
    expect(await store.unfinished([active, ended, 'unknown'])).toEqual(new Set([active]));
  });
});

describe('a migration', () => {
  async function migrated(migration: string, outbox: string) {
    const before = await startStorageBefore(migration);
    try {
      await before.db.batch([
        before.db.prepare(`INSERT INTO accounts (id, name, credit_seconds, created_at) VALUES ('a', 'a', 100, 0)`),
        before.db.prepare(
          `INSERT INTO jobs (id, account_id, kind, status, request, created_at, updated_at)
           VALUES ('old', 'a', 'diarize', 'running', '{}', 0, 0)`,
        ),
        before.db.prepare(`INSERT INTO outbox (id, job_id, queue, body, due_at, lease_until, starts) VALUES ${outbox}`),
      ]);
      await migrate(before.db, { from: migration });
      const { rows } = await createJobStore(before.db).overdue(Number.POSITIVE_INFINITY, 10);
      const { work } = (await before.db
        .prepare('SELECT work_seconds AS work FROM accounts')
        .first<{ work: number }>())!;
      return { messages: rows.map(({ message }) => message), work };
    } finally {
      await before.stop();
    }
  }

  it('continues a job that an earlier version had queued for planning', async () => {
    const { messages } = await migrated(
      '0009_ingest.sql',
      `('old/plan', 'old', 'plans', '{"step":"plan","jobId":"old"}', 5, 7, 2)`,
    );
    expect(messages).toEqual([{ step: 'ingest', jobId: 'old' }]);
  });

  it('continues a job with shard messages of an earlier version, and counts its work', async () => {
    const { messages, work } = await migrated(
      '0010_job_engine.sql',
      `('old/shard/0', 'old', 'jobs', '{"step":"shard","jobId":"old","shard":0}', 5, 7, 2),
       ('old/shard/1', 'old', 'jobs', '{"step":"shard","jobId":"old","shard":1}', 5, 7, 0),
       ('other/assemble', 'other', 'jobs', '{"step":"assemble","jobId":"other"}', 5, 7, 0)`,
    );
    expect(messages).toEqual([
      { step: 'ingest', jobId: 'old' },
      { step: 'assemble', jobId: 'other' },
    ]);
    expect(work).toBe(3600);
  });
});
