import { afterAll, beforeAll, expect, it } from 'vitest';
import { startShards } from '../../../test/helpers/database.ts';
import { startStorage } from '../../../test/helpers/storage.ts';
import type { DiarizeRequest } from '../../contract/diarize.ts';
import { canPay } from './account-limits.ts';
import { createJobStore } from './job-rows.ts';
import { createLiveStore } from './live-store.ts';

const NOW = 1_800_000_000_000;
const REFUSED = { ok: false, error: { kind: 'payment_required' } };
const DONE = { shardCount: 1, billedSeconds: 20, creditSeconds: 20, outputKey: 'o' };

let storage: Awaited<ReturnType<typeof startStorage>>;
let made = 0;
beforeAll(async () => {
  storage = await startStorage();
});
afterAll(() => storage?.stop());

async function accountWith(creditSeconds: number, subscribed = 0) {
  const accountId = `account-${++made}`;
  await storage.db
    .prepare('INSERT INTO accounts (id, name, subscribed, credit_seconds, created_at) VALUES (?1, ?1, ?2, ?3, 0)')
    .bind(accountId, subscribed, creditSeconds)
    .run();
  const jobs = createJobStore(storage.db);
  const streams = createLiveStore(storage.db);
  const request = { url: 'https://example.com/a.wav', model: 'precision-2' } as DiarizeRequest;
  return {
    jobs,
    streams,
    startJob: (id = `job-${++made}`, idempotency?: { key: string; bodyHash: string }) =>
      jobs.create({ accountId, kind: 'diarize', request, id, idempotency, now: NOW }),
    startStream: (id = `stream-${++made}`) => streams.create({ id, accountId, input: {}, now: NOW }, 3),
    canPay: (now = NOW) => canPay(storage.db, accountId, now),
  };
}

const rows = async (table: string, where: string, value: string) =>
  (await storage.db.prepare(`SELECT * FROM ${table} WHERE ${where} = ?`).bind(value).all()).results;

it('concurrent jobs do not reserve the same credit', async () => {
  const account = await accountWith(59);
  const started = await Promise.all(Array.from({ length: 5 }, () => account.startJob()));
  expect(started.filter(({ ok }) => ok)).toHaveLength(2);
  expect(started.filter(({ ok }) => !ok)).toEqual([REFUSED, REFUSED, REFUSED]);
  expect(await account.canPay()).toBe(false);
});

it('an unpaid job stores nothing, so that its idempotency key stays free', async () => {
  const account = await accountWith(20);
  const idempotency = { key: 'later', bodyHash: 'h' };
  const first = await account.startJob();
  expect(await account.startJob('unpaid', idempotency)).toEqual(REFUSED);
  for (const [table, column] of [
    ['jobs', 'id'],
    ['outbox', 'job_id'],
    ['idempotency_keys', 'job_id'],
  ])
    expect(await rows(table, column, 'unpaid')).toEqual([]);
  await account.jobs.cancel(first.ok ? first.value.id : '', { code: 'canceled', message: '' }, NOW);
  expect(await account.startJob('paid', idempotency)).toMatchObject({ ok: true, value: { id: 'paid' } });
});

it('a job reserves credit for its duration until it ends', async () => {
  const account = await accountWith(100);
  await account.startJob('read');
  expect(await account.canPay()).toBe(true);
  await startShards(account.jobs, 'read', { shardCount: 1, durationSeconds: 80.5 }, NOW);
  expect(await account.canPay()).toBe(false);
  await account.jobs.succeed('read', { ...DONE, billedSeconds: 80.5, creditSeconds: 80.5 }, NOW);
  expect(await account.canPay()).toBe(false);
});

it('starts the analysis only if the credit covers the whole recording', async () => {
  const account = await accountWith(100);
  const other = await account.startJob();
  await account.startJob('long');
  await account.jobs.start('long', NOW);
  const long = (await account.jobs.find('long'))!;
  const finish = (durationSeconds: number) => account.jobs.finishIngest(long, { shardCount: 1, durationSeconds }, NOW);
  expect([await account.jobs.reserve(long, 81, NOW), await finish(80.01)]).toEqual([false, false]);
  expect(await rows('outbox', 'job_id', 'long')).toMatchObject([{ id: 'long/ingest' }]);
  expect(await account.jobs.reserve(long, 60, NOW)).toBe(true);
  expect(await account.canPay()).toBe(true);
  expect([await account.jobs.reserve(long, 80, NOW), await account.canPay()]).toEqual([true, false]);
  await account.jobs.cancel(other.ok ? other.value.id : '', { code: 'canceled', message: '' }, NOW);
  expect(await finish(80.01)).toBe(true);
  expect(await account.canPay()).toBe(false);
  await account.jobs.fail('long', { code: 'x', message: 'x' }, NOW);
  expect(await account.canPay()).toBe(true);
});

it('tolerates rounding errors in sums of credit', async () => {
  const charged = await accountWith(80.3);
  for (const id of ['tenths-1', 'tenths-2', 'tenths-3']) {
    await charged.startJob(id);
    await charged.jobs.succeed(id, { ...DONE, billedSeconds: 20.1, creditSeconds: 20.1 }, NOW);
  }
  expect(await charged.canPay()).toBe(true);
  const reserving = await accountWith(60.4);
  for (const [id, durationSeconds] of [
    ['reserved-1', 20.1],
    ['reserved-2', 20.3],
  ] as const) {
    await reserving.startJob(id);
    await startShards(reserving.jobs, id, { shardCount: 1, durationSeconds }, NOW);
  }
  expect(await reserving.canPay()).toBe(true);
  const short = await accountWith(19.998);
  expect(await short.canPay()).toBe(false);
});

it('a stream reserves credit for the time that it has run', async () => {
  const account = await accountWith(60);
  expect(await account.startStream('running')).toBe('created');
  await account.streams.start('running', NOW);
  expect(await account.canPay(NOW + 40_000)).toBe(true);
  expect(await account.canPay(NOW + 41_000)).toBe(false);
  expect(await Promise.all([account.startStream(), account.startStream(), account.startStream()])).toEqual([
    'created',
    'created',
    'payment_required',
  ]);
});

it('an account with a subscription needs no credit', async () => {
  const account = await accountWith(-50, 1);
  expect(await account.canPay()).toBe(true);
  expect((await account.startJob()).ok).toBe(true);
  expect(await account.startStream()).toBe('created');
});
