import { afterAll, beforeAll, expect, it } from 'vitest';
import { startStorage } from '../../../test/helpers/storage.ts';
import type { DiarizeRequest } from '../../contract/diarize.ts';
import type { JobStore } from '../../jobs/job-store.ts';
import { createJobStore } from './job-rows.ts';
import { createUsage } from './usage-records.ts';

/** Query plans of the statements of jobs: none may scan a table. */
const NOW = 1_800_000_000_000;
const ID = 'job';
let storage: Awaited<ReturnType<typeof startStorage>>;
beforeAll(async () => {
  storage = await startStorage();
  await storage.db.prepare(`INSERT INTO accounts (id, name, subscribed, created_at) VALUES ('a', 'a', 1, 0)`).run();
});
afterAll(() => storage?.stop());

interface Query {
  readonly sql: string;
  readonly values: readonly unknown[];
}

/** The same database, which records its queries. */
function recordingDatabase() {
  const queries: Query[] = [];
  const db = new Proxy(storage.db, {
    get(target, name) {
      if (name === 'prepare') {
        return (sql: string) => {
          const statement = target.prepare(sql);
          return new Proxy(statement, {
            get(own, method) {
              const value: unknown = Reflect.get(own, method, own);
              if (method !== 'bind') return typeof value === 'function' ? value.bind(own) : value;
              return (...values: unknown[]) => {
                queries.push({ sql, values });
                return own.bind(...values);
              };
            },
          });
        };
      }
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  return { db, queries };
}

const outcome = { outputKey: 'o', billedSeconds: 60, creditSeconds: 60, transcribedSeconds: 60 };
/** Calls that list, read and end jobs, and those of sweeps. */
const CALLS: Record<string, (store: JobStore) => Promise<unknown>> = {
  list: (store) => store.list('a', { limit: 10 }),
  'list by status': (store) => store.list('a', { limit: 10, status: 'running', after: { createdAt: NOW, id: ID } }),
  find: (store) => store.find(ID),
  start: (store) => store.start(ID, NOW),
  begin: (store) => store.begin({ step: 'ingest', jobId: ID }, NOW + 60_000, NOW),
  keep: (store) => store.keep(ID, `${ID}/ingest`, NOW),
  finishIngest: async (store) =>
    store.finishIngest((await store.find(ID))!, { shardCount: 1, durationSeconds: 60 }, NOW),
  nextStep: (store) => store.nextStep(ID, ['analyse'], 'assemble', NOW),
  admit: (store) => store.admit('a', NOW),
  succeed: (store) => store.succeed(ID, outcome, NOW),
  fail: (store) => store.fail(ID, { code: 'x', message: 'x' }, NOW),
  findReplay: (store) => store.findReplay('a', 'key', NOW),
  'sweep: overdue': (store) => store.overdue(NOW, 100),
  'sweep: expired': (store) => store.expired(NOW, 100),
  'sweep: markCleaned': (store) => store.markCleaned([ID], NOW),
  'sweep: deleted': (store) => store.deleted(100, { id: ID, deletedAt: NOW }),
  'sweep: unfinished': (store) => store.unfinished([ID]),
  'sweep: runningSince': (store) => store.runningSince(NOW, 100),
  'sweep: waitingAccounts': (store) => store.waitingAccounts(100, ''),
  'sweep: position': (store) => store.sweepPosition('admit'),
  'sweep: expiredMedia': (store) => store.expiredMedia(NOW, 100),
  'sweep: removeMedia': (store) => store.removeMedia(['key']),
  'sweep: expireIdempotencyKeys': (store) => store.expireIdempotencyKeys(NOW),
  'sweep: forget': (store) => store.forget(NOW, 100),
  remove: (store) => store.remove('a', ID, NOW),
};

it('no list, step or sweep scans a table', async () => {
  const { db, queries } = recordingDatabase();
  const store = createJobStore(db);
  const request = { url: 'https://example.com/a.wav', webhook: 'https://example.com/' } as DiarizeRequest;
  const create = () =>
    store.create({
      accountId: 'a',
      kind: 'diarize',
      request,
      id: ID,
      now: NOW,
      idempotency: { key: 'k', bodyHash: 'h' },
    });
  for (const [name, call] of [['create', create] as const, ...Object.entries(CALLS)]) {
    queries.length = 0;
    await call(store);
    expect(queries.length, name).toBeGreaterThan(0);
    for (const { sql, values } of queries) {
      const { results } = await storage.db
        .prepare(`EXPLAIN QUERY PLAN ${sql}`)
        .bind(...values)
        .all<{ detail: string }>();
      const plan = results.map(({ detail }) => detail).join('\n');
      expect(plan, `${name}: ${sql}`).not.toMatch(/SCAN (jobs|outbox|accounts|usage_|media|idempotency|live_|sweep_)/);
    }
  }
});

it('a job has one row, one message and one usage record per kind, later none', async () => {
  const store = createJobStore(storage.db);
  const rows = async () => {
    const tables = ['jobs', 'outbox', 'usage_records', 'idempotency_keys'];
    const counts = tables.map((table) => storage.db.prepare(`SELECT COUNT(*) FROM ${table}`).first('COUNT(*)'));
    return Promise.all(counts);
  };
  await storage.db.batch(
    ['jobs', 'outbox', 'usage_records', 'idempotency_keys', 'usage_days'].map((table) =>
      storage.db.prepare(`DELETE FROM ${table}`),
    ),
  );
  const request = { url: 'https://example.com/a.wav' } as DiarizeRequest;
  await store.create({ accountId: 'a', kind: 'diarize', request, id: ID, now: NOW });
  await store.start(ID, NOW);
  await store.finishIngest((await store.find(ID))!, { shardCount: 288, durationSeconds: 86_400 }, NOW);
  expect(await rows()).toEqual([1, 1, 0, 0]);
  await store.succeed(ID, outcome, NOW);
  expect(await rows()).toEqual([1, 0, 2, 0]);
  await store.markCleaned([ID], NOW);
  await store.forget(NOW, 100);
  expect(await rows()).toEqual([0, 0, 0, 0]);
  const days = await createUsage(storage.db).perDay('a', { from: NOW - 86_400_000, to: NOW + 86_400_000 });
  expect(days.map(({ kind, billedSeconds }) => [kind, billedSeconds])).toEqual([
    ['diarize', 60],
    ['transcription', 60],
  ]);
});
