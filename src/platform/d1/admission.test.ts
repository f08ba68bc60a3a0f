import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { startStorage } from '../../../test/helpers/storage.ts';
import type { DiarizeRequest } from '../../contract/diarize.ts';
import { admitAll } from '../../jobs/end-job.ts';
import type { JobPorts } from '../../jobs/job-ports.ts';
import type { JobStore } from '../../jobs/job-store.ts';
import { WAITING_ACCOUNTS_SQL, WAITING_SQL } from './account-limits.ts';
import { createJobStore } from './job-rows.ts';

const NOW = 1_800_000_000_000;
const HOUR = 3600;
const CANCELED = { code: 'canceled', message: 'x' };
let storage: Awaited<ReturnType<typeof startStorage>>;
let store: JobStore;
let made = 0;
let now: number;
beforeAll(async () => {
  storage = await startStorage();
  store = createJobStore(storage.db, 3 * HOUR);
});
afterAll(() => storage?.stop());
beforeEach(() => {
  now = NOW;
});

async function account(): Promise<string> {
  const id = `account-${made++}`;
  await storage.db
    .prepare('INSERT INTO accounts (id, name, subscribed, created_at) VALUES (?1, ?1, 1, 0)')
    .bind(id)
    .run();
  return id;
}

/** Creates jobs one after another. @returns their ids and statuses */
async function create(accountId: string, count: number) {
  const ids: string[] = [];
  const states: string[] = [];
  for (let i = 0; i < count; i++) {
    const id = `job-${String(made++).padStart(6, '0')}`;
    const request = { url: 'https://example.com/a.wav' } as DiarizeRequest;
    const created = await store.create({ accountId, kind: 'diarize', request, id, now: now++ });
    ids.push(id);
    states.push(created.ok ? created.value.status : created.error.kind);
  }
  return { ids, states };
}
const workOf = async (accountId: string) =>
  (await storage.db
    .prepare('SELECT work_seconds FROM accounts WHERE id = ?')
    .bind(accountId)
    .first('work_seconds')) as number;
const hasMessage = async (id: string) => (await store.outboxRow(`${id}/ingest`)) !== undefined;

it('jobs beyond the work limit of their account wait, and start in order when others end', async () => {
  const a = await account();
  const { ids, states } = await create(a, 6);
  expect(states).toEqual(['created', 'created', 'created', 'pending', 'pending', 'pending']);
  expect(await Promise.all(ids.map(hasMessage))).toEqual([true, true, true, false, false, false]);
  expect([await store.admit(a, now), await workOf(a)]).toEqual([[], 3 * HOUR]);
  await store.cancel(ids[1]!, CANCELED, now);
  expect(await workOf(a)).toBe(2 * HOUR);
  // A new job does not overtake the waiting ones.
  expect((await create(a, 1)).states).toEqual(['pending']);
  const admitted = await Promise.all([store.admit(a, now), store.admit(a, now)]);
  expect(admitted.flat()).toEqual([ids[3]]);
  expect([await hasMessage(ids[3]!), await hasMessage(ids[4]!), await workOf(a)]).toEqual([true, false, 3 * HOUR]);
  expect([await store.start(ids[3]!, now), (await store.find(ids[3]!))?.status]).toEqual([true, 'running']);
});

it('a job counts with its known duration as work, and not after its end', async () => {
  const a = await account();
  const { ids } = await create(a, 5);
  await store.start(ids[0]!, now);
  await store.finishIngest((await store.find(ids[0]!))!, { shardCount: 1, durationSeconds: 60 }, now);
  expect(await workOf(a)).toBe(2 * HOUR + 60);
  await store.succeed(ids[0]!, { outputKey: 'o', billedSeconds: 60, creditSeconds: 60 }, now);
  await store.succeed(ids[0]!, { outputKey: 'o', billedSeconds: 60, creditSeconds: 60 }, now);
  await store.remove(a, ids[1]!, now);
  await store.remove(a, ids[0]!, now);
  await store.fail(ids[2]!, CANCELED, now);
  await store.remove(a, ids[2]!, now);
  expect(await workOf(a)).toBe(0);
  // A job that is deleted while it waits has never counted.
  await store.remove(a, ids[3]!, now);
  expect([await store.admit(a, now), await workOf(a)]).toEqual([[ids[4]], HOUR]);
});

it('a single recording may exceed the work limit of its account', async () => {
  const a = await account();
  const small = createJobStore(storage.db, 60);
  const request = { url: 'https://example.com/a.wav' } as DiarizeRequest;
  const created = await small.create({ accountId: a, kind: 'diarize', request, id: `long-${a}`, now });
  expect(created).toMatchObject({ ok: true, value: { status: 'created' } });
});

it('ten thousand jobs of one account block neither other accounts nor the sweep', async () => {
  const [many, other] = [await account(), await account()];
  await create(many, 4);
  await storage.db
    .prepare(
      `INSERT INTO jobs (id, account_id, kind, status, request, created_at, updated_at)
       WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 9999)
       SELECT ?1 || '-' || i, ?1, 'diarize', 'pending', '{}', ?2 + i, ?2 FROM n`,
    )
    .bind(many, NOW + 1e6)
    .run();
  expect((await create(other, 1)).states).toEqual(['created']);
  const [waiting] = (await create(other, 4)).ids.slice(2);
  const ended = (
    await storage.db
      .prepare(`SELECT id FROM jobs WHERE account_id = ? AND status = 'created'`)
      .bind(other)
      .all<{ id: string }>()
  ).results[0]!.id;
  await store.cancel(ended, CANCELED, now);
  const sent: string[] = [];
  const queue = {
    send: async () => undefined,
    sendAll: async (all: readonly { message: { jobId: string } }[]) =>
      void sent.push(...all.map(({ message }) => message.jobId)),
  };
  await admitAll({ store, queue, now: () => now, log: () => undefined } as unknown as JobPorts);
  expect(sent).toContain(waiting);
  const read = await storage.db
    .prepare(WAITING_ACCOUNTS_SQL)
    .bind('', 50, 3 * HOUR)
    .all();
  expect(read.meta.rows_read).toBeLessThan(200);
});

it('the sweep reaches every account, a hundred at a time, and skips accounts without room', async () => {
  await storage.db.batch(['jobs', 'outbox', 'accounts'].map((table) => storage.db.prepare(`DELETE FROM ${table}`)));
  const accounts = 250;
  const insert = (table: string, columns: string, values: string) =>
    storage.db.prepare(
      `WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ${accounts - 1})
       INSERT INTO ${table} (${columns}) SELECT ${values} FROM n`,
    );
  await storage.db.batch([
    // Every fifth account is full.
    insert('accounts', 'id, name, created_at, work_seconds', `'w' || i, 'w' || i, 0, (i % 5 = 0) * ${3 * HOUR}`),
    insert(
      'jobs',
      'id, account_id, kind, status, request, created_at, updated_at',
      `'w' || i, 'w' || i, 'diarize', 'pending', '{}', 0, 0`,
    ),
  ]);
  const sent: string[] = [];
  const queue = {
    send: async () => undefined,
    sendAll: async (all: readonly { message: { jobId: string } }[]) =>
      void sent.push(...all.map(({ message }) => message.jobId)),
  };
  // An account whose jobs cannot be admitted must not block the accounts after it.
  const stuck = (accountId: string) => accountId.startsWith('w1');
  const admit: JobStore['admit'] = (accountId, at) =>
    stuck(accountId) ? Promise.reject(new Error('x')) : store.admit(accountId, at);
  const ports = { store: { ...store, admit }, queue, now: () => now, log: () => undefined } as unknown as JobPorts;
  const expected = Array.from({ length: accounts }, (_, i) => `w${i}`).filter((id, i) => i % 5 > 0 && !stuck(id));
  await admitAll(ports);
  expect(sent.length).toBeLessThanOrEqual(100);
  for (let sweeps = 1; sweeps < 3; sweeps++) await admitAll(ports);
  expect(sent.sort()).toEqual(expected.sort());
});

it.each([
  ['waiting jobs', WAITING_SQL, ['a', 1]],
  ['accounts with waiting jobs', WAITING_ACCOUNTS_SQL, ['', 1, 1]],
])('finds %s by their index', async (_, sql, values) => {
  const { results } = await storage.db
    .prepare(`EXPLAIN QUERY PLAN ${sql}`)
    .bind(...values)
    .all<{ detail: string }>();
  const plan = results.map(({ detail }) => detail).join('\n');
  expect(plan).toContain('jobs_waiting');
  expect(plan).not.toMatch(/SCAN jobs/);
});
