import { afterAll, beforeAll, expect, it } from 'vitest';
import { startStorage } from '../../../test/helpers/storage.ts';
import { readBacklog } from './health.ts';

let storage: Awaited<ReturnType<typeof startStorage>>;
beforeAll(async () => {
  storage = await startStorage();
});
afterAll(() => storage?.stop());

const NOW = 1_760_000_000_000;

it('reports messages, age of the oldest and overdue leases of each queue', async () => {
  const insert = storage.db.prepare(
    "INSERT INTO outbox (id, job_id, queue, body, due_at, lease_until) VALUES (?1, 'j', ?2, '{}', ?3, ?4)",
  );
  await storage.db.batch([
    insert.bind('a', 'jobs', NOW - 90_000, NOW + 30_000),
    insert.bind('b', 'jobs', NOW - 30_000, NOW - 10_000),
    insert.bind('handed over', 'jobs', 0, NOW + 900_000),
    insert.bind('d', 'priority', 0, NOW - 5000),
    insert.bind('c', 'webhooks', NOW + 60_000, NOW + 120_000),
  ]);
  expect(await readBacklog(storage.db, NOW)).toEqual([
    { queue: 'jobs', messages: 2, oldestSeconds: 90, overdueSeconds: 10 },
    { queue: 'priority', messages: 0, oldestSeconds: 0, overdueSeconds: 5 },
    { queue: 'webhooks', messages: 1, oldestSeconds: -60, overdueSeconds: -120 },
  ]);
});
