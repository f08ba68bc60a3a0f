import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { migrate, startShards, startStorage } from '../../../test/helpers/database.ts';
import type { DiarizeRequest } from '../../contract/diarize.ts';
import { billOf } from '../../jobs/bill.ts';
import type { JobStore, OutboxPosition } from '../../jobs/ports.ts';
import { createJobStore } from './job-store.ts';

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
  it('writes a job and its first message together', async () => {
    const id = `job-${made++}`;
    const created = await store.create({ ...request({ webhook: 'https://example.com/hook' }), id, now: NOW });
    expect(created.ok && created.value).toMatchObject({
      id,
      status: 'created',
      webhookUrl: 'https://example.com/hook',
    });
    expect(await outboxIds(id)).toEqual([`${id}/ingest`]);
    expect(await store.findOwned('somebody-else', id)).toBeUndefined();
  });

  it('writes shards while the recording is read, and the rest in place of the ingest message', async () => {
    const id = `job-${made++}`;
    await store.create({ ...request(), id, now: NOW });
    expect(await store.addShards(id, 0, 1, NOW)).toBe(false);
    expect(await outboxIds(id)).toEqual([`${id}/ingest`]);
    await store.start(id, NOW);
    expect(await store.addShards(id, 0, 2, NOW)).toBe(true);
    expect(await outboxIds(id)).toEqual([`${id}/ingest`, `${id}/shard/0`, `${id}/shard/1`]);
    await store.recordStart(`${id}/shard/0`, NOW + 9000);
    await store.settle(`${id}/shard/1`);
    // Those that are there stay, and none is written twice.
    expect(await store.addShards(id, 0, 1, NOW + 1)).toBe(true);
    expect(await store.outboxRow(`${id}/shard/0`)).toMatchObject({ starts: 1, leaseUntil: NOW + 9000 });
    expect((await store.find(id))?.shardCount).toBeUndefined();
    expect(await store.finishIngest(id, { shardCount: 4, durationSeconds: 901, from: 2 }, NOW + 3)).toBe(true);
    expect(await outboxIds(id)).toEqual([`${id}/shard/0`, `${id}/shard/2`, `${id}/shard/3`]);
    expect(await rowOf('SELECT shard_count, duration_seconds FROM jobs WHERE id = ?', id)).toEqual({
      shard_count: 4,
      duration_seconds: 901,
    });
    await store.cancel(id, { code: 'canceled', message: '' }, NOW + 4);
    expect(await store.addShards(id, 4, 5, NOW + 5)).toBe(false);
    expect(await store.finishIngest(id, { shardCount: 1, durationSeconds: 5, from: 0 }, NOW + 5)).toBe(false);
    expect(await outboxIds(id)).toEqual([]);
    expect((await store.find(id))?.durationSeconds).toBe(901);
  });

  it('replaces all messages of a running job by one ingest message, and that by its shards', async () => {
    const id = await runningJob(3);
    const answers = await Promise.all(Array.from({ length: 5 }, () => store.requestIngest(id, NOW + 2)));
    expect(answers.filter((isFirst) => isFirst)).toHaveLength(1);
    expect(await outboxIds(id)).toEqual([`${id}/ingest`]);
    expect(await store.isStranded(id)).toBe(false);
    await store.finishIngest(id, { shardCount: 2, durationSeconds: 50, from: 0 }, NOW + 3);
    expect(await outboxIds(id)).toEqual([`${id}/shard/0`, `${id}/shard/1`]);
    await store.cancel(id, { code: 'canceled', message: '' }, NOW + 4);
    expect(await store.requestIngest(id, NOW + 5)).toBe(false);
    expect(await outboxIds(id)).toEqual([]);
  });

  it('counts the beginnings of a step from its hand-over to another invocation', async () => {
    const id = `job-${made++}`;
    await store.create({ ...request(), id, now: NOW });
    for (let start = 0; start < 3; start++) await store.recordStart(`${id}/ingest`, NOW + 1000);
    await store.handOver(`${id}/ingest`, NOW + 5000);
    expect(await store.outboxRow(`${id}/ingest`)).toMatchObject({ starts: 0, leaseUntil: NOW + 5000 });
  });

  it('makes one job of many racing calls with one idempotency key, and refuses another body', async () => {
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

  it('starts a job once, with one message a shard', async () => {
    const id = await runningJob(3);
    expect(await outboxIds(id)).toEqual([`${id}/shard/0`, `${id}/shard/1`, `${id}/shard/2`]);
    expect(await store.start(id, NOW + 2)).toBe(false);
    expect(await store.find(id)).toMatchObject({ status: 'running', shardCount: 3, updatedAt: NOW + 1 });
  });

  it('ends in the same way where settled shards are written a second time', async () => {
    const id = await runningJob(2);
    await store.settle(`${id}/shard/0`);
    // Harmless: its part exists.
    await store.finishIngest(id, { shardCount: 2, durationSeconds: 61.5, from: 0 }, NOW + 2);
    await store.requestAssemble(id, NOW + 3);
    await store.succeed(id, { outputKey: 'o', billedSeconds: 61.5, creditSeconds: 61.5 }, NOW + 4);
    expect(await outboxIds(id)).toEqual([]);
  });

  it('bills a success once, however often and at whatever time it is reported', async () => {
    const id = await runningJob(1, { webhook: 'https://example.com/hook' });
    await store.requestAssemble(id, NOW + 2);
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

  it('leaves the credit of a subscribed account alone', async () => {
    await storage.db.prepare('UPDATE accounts SET subscribed = 1 WHERE id = ?').bind(accountId).run();
    const id = await runningJob();
    await store.requestAssemble(id, NOW + 2);
    await store.succeed(id, { outputKey: 'o', billedSeconds: 61.5, creditSeconds: 61.5 }, NOW + 3);
    expect(await rowOf('SELECT credit_seconds FROM accounts WHERE id = ?', accountId)).toEqual({ credit_seconds: 100 });
    expect(await rowOf('SELECT billed_seconds FROM usage_records WHERE job_id = ?', id)).toEqual({
      billed_seconds: 61.5,
    });
  });

  it('bills a voiceprint as one, at its price in credit', async () => {
    const id = `job-${made++}`;
    await store.create({ ...request(), kind: 'voiceprint', id, now: NOW });
    await startShards(store, id, { shardCount: 1, durationSeconds: 12 }, NOW + 1);
    await store.requestAssemble(id, NOW + 2);
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
    expect(await store.requestAssemble(id, NOW + 5)).toBe(false);
    expect(await store.find(id)).toMatchObject({
      status: 'failed',
      error: { code: 'no_speech', message: 'No speech.' },
    });
    expect(await rowOf('SELECT COUNT(*) AS rows FROM usage_records WHERE job_id = ?', id)).toEqual({ rows: 0 });
    expect(await outboxIds(id)).toEqual([`${id}/webhook`]);
  });

  it('asks for one assembly', async () => {
    const id = await runningJob(1);
    const asked = await Promise.all([1, 2, 3].map((later) => store.requestAssemble(id, NOW + later)));
    expect(asked.filter(Boolean)).toHaveLength(1);
  });

  it('gives back what was sent and not heard of, and counts beginnings', async () => {
    const id = await runningJob(1);
    const rowId = `${id}/shard/0`;
    await store.recordStart(rowId, NOW + 5000);
    const overdue = async (before: number) => (await store.overdue(before, 10, { jobId: id })).rows;
    expect(await overdue(NOW + 5000)).toEqual([]);
    const [row] = await overdue(NOW + 5001);
    expect(row).toMatchObject({ id: rowId, starts: 1, message: { step: 'shard', jobId: id, shard: 0 } });
    await store.renewLease(rowId, NOW + 9000);
    expect(await overdue(NOW + 5001)).toEqual([]);
  });

  it('renews many leases at once, each to its own time', async () => {
    const id = await runningJob(3);
    await store.renewLeases([
      { id: `${id}/shard/2`, leaseUntil: NOW + 9000 },
      { id: `${id}/shard/0`, leaseUntil: NOW + 7000 },
      { id: 'unknown', leaseUntil: NOW },
    ]);
    const { rows } = await store.overdue(Number.POSITIVE_INFINITY, 10, { jobId: id });
    expect(rows.map((row) => [row.id, row.leaseUntil]).slice(0, 2)).toEqual([
      [`${id}/shard/0`, NOW + 7000],
      [`${id}/shard/2`, NOW + 9000],
    ]);
    await store.renewLeases([]);
  });

  it('gives messages page by page, also where their leases are the same and some cannot be read', async () => {
    const id = await runningJob(7);
    const insert = `INSERT INTO outbox (id, job_id, queue, body, due_at, lease_until) VALUES (?, ?, 'jobs', '{', 0, 0)`;
    for (let i = 0; i < 4; i++) await storage.db.prepare(insert).bind(`${id}/unreadable/${i}`, id).run();
    const pages: string[][] = [];
    let after: OutboxPosition | undefined;
    do {
      const page = await store.overdue(Number.POSITIVE_INFINITY, 3, { jobId: id, after });
      pages.push(page.rows.map((row) => row.id));
      after = page.next;
    } while (after && pages.length < 20);
    const shards = Array.from({ length: 7 }, (_, shard) => `${id}/shard/${shard}`);
    expect(pages.flat()).toEqual(shards);
  });

  it('passes over a message that it cannot read, of another version: one such row stopped every sweep', async () => {
    const id = await runningJob();
    const insert = `INSERT INTO outbox (id, job_id, queue, body, due_at, lease_until) VALUES (?, ?, 'jobs', ?, 0, -1)`;
    for (const [name, body] of [
      ['next', '{"step":"next"}'],
      ['broken', '{'],
    ]) {
      await storage.db.prepare(insert).bind(`${id}/${name}`, id, body).run();
    }
    const readable = [`${id}/shard/0`, `${id}/shard/1`];
    expect(await outboxIds(id)).toEqual(readable);
    const first = await store.overdue(NOW + 1e9, 1);
    expect(first.rows.map((row) => row.id)).not.toContain(`${id}/next`);
    expect(await outboxIds(id)).toEqual(readable);
  });

  it('tells what an idempotency key stands for, for a day', async () => {
    const id = `job-${made++}`;
    await store.create({ ...request(), id, now: NOW, idempotency: { key: 'k', bodyHash: 'h' } });
    const day = 24 * 3600 * 1000;
    expect(await store.findReplay(accountId, 'k', NOW + day - 1)).toEqual({ jobId: id, bodyHash: 'h' });
    expect(await store.findReplay(accountId, 'k', NOW + day)).toBeUndefined();
    expect(await store.findReplay('somebody-else', 'k', NOW)).toBeUndefined();
  });

  it('makes a new job under a key whose day is over, also when its first write fails', async () => {
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

  it('leaves deleted jobs to the watch over deleted jobs', async () => {
    const id = await runningJob();
    await store.remove(accountId, id, NOW + 2);
    expect((await store.expired(NOW + 1e9, 1000)).map((job) => job.id)).not.toContain(id);
  });

  it('hands out expired outputs until they are noted as cleaned', async () => {
    const id = await runningJob(1);
    await store.succeed(id, { outputKey: `outputs/${id}`, billedSeconds: 20, creditSeconds: 20 }, 1000);
    expect(await store.expired(999, 10)).toEqual([]);
    expect(await store.expired(1000, 10)).toEqual([{ id, outputKey: `outputs/${id}` }]);
    await store.markCleaned([id], NOW);
    expect(await store.expired(1000, 10)).toEqual([]);
  });

  it('keeps no addresses, which may hold secrets, of a job whose output is gone', async () => {
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

  it('tells working jobs from ended and unknown ones', async () => {
    const [working, ended] = [await runningJob(), await runningJob()];
    await store.fail(ended, { code: 'x', message: 'x' }, NOW);
    expect(await store.unfinished([working, ended, 'unknown'])).toEqual(new Set([working]));
  });
});

it('continues with a job that waited to be planned by a version before', async () => {
  const migration = '0009_ingest.sql';
  const before = await startStorage(migration);
  try {
    await before.db.batch([
      before.db.prepare(`INSERT INTO accounts (id, name, credit_seconds, created_at) VALUES ('a', 'a', 100, 0)`),
      before.db.prepare(
        `INSERT INTO jobs (id, account_id, kind, status, request, created_at, updated_at) VALUES ('old', 'a', 'diarize', 'created', '{}', 0, 0)`,
      ),
      before.db.prepare(
        `INSERT INTO outbox (id, job_id, queue, body, due_at, lease_until, starts)
         VALUES ('old/plan', 'old', 'plans', '{"step":"plan","jobId":"old"}', 5, 7, 2),
                ('other/shard/0', 'other', 'jobs', '{"step":"shard","jobId":"other","shard":0}', 5, 7, 2)`,
      ),
    ]);
    await migrate(before.db, { from: migration });
    const { rows } = await createJobStore(before.db).overdue(Number.POSITIVE_INFINITY, 10);
    expect(rows).toEqual([
      { id: 'old/ingest', message: { step: 'ingest', jobId: 'old' }, dueAt: 5, leaseUntil: 7, starts: 2 },
      { id: 'other/shard/0', message: { step: 'shard', jobId: 'other', shard: 0 }, dueAt: 5, leaseUntil: 7, starts: 2 },
    ]);
    const queues = await before.db.prepare('SELECT queue FROM outbox ORDER BY id').all();
    expect(queues.results).toEqual([{ queue: 'ingest' }, { queue: 'jobs' }]);
  } finally {
    await before.stop();
  }
});
