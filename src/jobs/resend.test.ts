import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { startStorage } from '../../test/helpers/database.ts';
import type { DiarizeRequest } from '../contract/diarize.ts';
import { createJobStore } from '../platform/d1/job-store.ts';
import { createQueues } from '../platform/queues.ts';
import { createObjectStore } from '../platform/r2-objects.ts';
import type { JobPorts, Queued } from './ports.ts';
import { failOverdue, resendLost } from './resend.ts';

/** On a real database, whose order of the leases decides what is sent, and real queues. */
const NOW = 1_800_000_000_000;
const LONG_AGO = NOW - 3_600_000;
const DAY = 24 * 3_600_000;
let storage: Awaited<ReturnType<typeof startStorage>>;
let sent: Queued[];
let requests: number;
/** Jobs whose objects were told that all is lost. */
let resent: string[];
let ports: JobPorts;
let made = 0;
beforeAll(async () => {
  storage = await startStorage();
  await storage.db.prepare(`INSERT INTO accounts (id, name, subscribed, created_at) VALUES ('a', 'a', 1, 0)`).run();
});
afterAll(() => storage?.stop());

beforeEach(async () => {
  await storage.db.prepare('DELETE FROM outbox').run();
  sent = [];
  requests = 0;
  resent = [];
  const prepare = (sql: string) => {
    requests++;
    return storage.db.prepare(sql);
  };
  const db = Object.create(storage.db, {
    prepare: { value: prepare },
    batch: { value: (statements: D1PreparedStatement[]) => storage.db.batch(statements) },
  }) as D1Database;
  const queue = createQueues(storage.queues);
  ports = {
    store: createJobStore(db),
    queue: {
      send: queue.send,
      sendAll: async (messages: readonly Queued[]) => {
        requests++;
        await queue.sendAll(messages);
        sent.push(...messages);
      },
    },
    progress: {
      resend: async (jobId: string) => void resent.push(jobId),
      end: async () => undefined,
    } as unknown as JobPorts['progress'],
    objects: createObjectStore(storage.bucket),
    log: () => {},
    now: () => NOW,
  } as Partial<JobPorts> as JobPorts;
});

/** So many running jobs, whose messages were sent long ago. */
async function running(count: number): Promise<string> {
  const id = `job-${made++}`;
  await storage.db
    .prepare(
      `INSERT INTO outbox (id, job_id, queue, body, due_at, lease_until)
       WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ?2 - 1)
       SELECT ?1 || '-' || i || '/analyse', ?1 || '-' || i, 'priority',
         json_object('step', 'analyse', 'jobId', ?1 || '-' || i), ?3, ?3 FROM n`,
    )
    .bind(id, count, LONG_AGO)
    .run();
  requests = 0;
  return id;
}

/** A webhook's last try, to be made then. */
async function webhook(dueAt: number) {
  const message = { step: 'webhook', jobId: `told-${made++}`, attempt: 3 } as const;
  await storage.db
    .prepare(
      `INSERT INTO outbox (id, job_id, queue, body, due_at, lease_until) VALUES (?1 || '/webhook', ?1, 'webhooks', ?2, ?3, ?4)`,
    )
    .bind(message.jobId, JSON.stringify(message), dueAt, dueAt + 900_000)
    .run();
  return message;
}
const messages = () => sent.map(({ message }) => message);

it('sends all messages after a restart: of more than two thousand the rest waited for the clock', async () => {
  await running(2500);
  expect(await resendLost(ports, Number.POSITIVE_INFINITY)).toBe(2500);
  expect(new Set(messages().map((message) => JSON.stringify(message))).size).toBe(2500);
});

it('sends what the clock finds in bounded portions, with far fewer requests than an invocation may make', async () => {
  await running(2500);
  expect(await resendLost(ports, NOW)).toBe(2000);
  expect(requests).toBeLessThanOrEqual(60);
  expect(await resendLost(ports, NOW)).toBe(500);
  expect(await resendLost(ports, NOW)).toBe(0);
});

it('sends a webhook whose turn is later than that of everything else after a restart', async () => {
  for (const count of [99, 100, 150, 250]) {
    await storage.db.prepare('DELETE FROM outbox').run();
    await running(count);
    const message = await webhook(NOW + 299_000);
    expect(await resendLost(ports, Number.POSITIVE_INFINITY)).toBe(count + 1);
    expect(messages()).toContainEqual(message);
  }
});

it('sends what is not due yet for when it is due: the last try of a webhook was made at once after a restart', async () => {
  await running(1);
  await webhook(NOW + 200_500);
  await resendLost(ports, Number.POSITIVE_INFINITY);
  expect(sent.map(({ delaySeconds }) => delaySeconds)).toEqual([0, 201]);
});

it('has the objects of jobs send all that they handed out after a restart', async () => {
  const id = await running(3);
  await resendLost(ports, Number.POSITIVE_INFINITY);
  expect(resent.sort()).toEqual([`${id}-0`, `${id}-1`, `${id}-2`]);
  resent.length = 0;
  await storage.db.prepare('UPDATE outbox SET lease_until = 0').run();
  await resendLost(ports, NOW);
  expect(resent).toEqual([]);
});

it('fails jobs that have been running for a day, and no others', async () => {
  const request = { url: 'https://example.com/a.wav' } as DiarizeRequest;
  for (const [id, startedAt] of [
    ['old', NOW - DAY],
    ['young', NOW - DAY + 1],
  ] as const) {
    await ports.store.create({ accountId: 'a', kind: 'diarize', request, id, now: NOW - 2 * DAY });
    await ports.store.start(id, startedAt);
  }
  await failOverdue(ports);
  expect(await ports.store.find('old')).toMatchObject({ status: 'failed', error: { code: 'internal' } });
  expect(await ports.store.find('young')).toMatchObject({ status: 'running' });
});
