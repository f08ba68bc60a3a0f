import type { D1Database } from '@cloudflare/workers-types';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { outboxOf } from '../../src/platform/d1/outbox.ts';
import { startStorage } from '../../test/helpers/storage.ts';
import { waitingMessagesOf } from './stuck-messages.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;

let storage: Awaited<ReturnType<typeof startStorage>>;
let waiting: () => Promise<string[]>;
beforeAll(async () => {
  storage = await startStorage();
  const query = waitingMessagesOf(storage.db as unknown as D1Database);
  waiting = async () => (await query()).map(({ queue, id }) => `${queue} ${id}`);
});
afterAll(() => storage.stop());
beforeEach(() => storage.db.prepare('DELETE FROM outbox').run());

interface Row {
  readonly queue?: string;
  readonly starts?: number;
  /** Milliseconds from now. */
  readonly dueIn?: number;
  readonly leaseIn: number;
}

async function insert(id: string, { queue = 'jobs', starts = 0, dueIn = -10 * MINUTE, leaseIn }: Row): Promise<void> {
  const now = Date.now();
  await storage.db
    .prepare('INSERT INTO outbox (id, job_id, queue, body, due_at, lease_until, starts) VALUES (?, ?, ?, ?, ?, ?, ?)')
    .bind(id, id, queue, '{}', now + dueIn, now + leaseIn, starts)
    .run();
}

/** Lease of a message that its queue should have delivered a minute ago. */
const QUEUED = { leaseIn: 14 * MINUTE };
/** Lease of a running step. */
const RUNNING = { starts: 1, leaseIn: 50 * SECOND };

it('lists messages that were sent and never started, the oldest first', async () => {
  await insert('second', { leaseIn: 14 * MINUTE });
  await insert('first', { leaseIn: 13 * MINUTE });
  await insert('other', { queue: 'ingest', leaseIn: 14 * MINUTE });
  expect(await waiting()).toEqual(['ingest other', 'jobs first', 'jobs second']);
});

it('lists a message that was never sent, and one whose retry is due', async () => {
  await insert('unsent', { leaseIn: -9 * MINUTE });
  await insert('retry', { starts: 2, ...QUEUED });
  expect(await waiting()).toEqual(['jobs unsent', 'jobs retry']);
});

it('omits messages that are not due or were postponed', async () => {
  await insert('webhook', { queue: 'webhooks', dueIn: 5 * MINUTE, leaseIn: 20 * MINUTE });
  await insert('put back', { queue: 'ingest', leaseIn: 15 * MINUTE + 30 * SECOND });
  await insert('retry', { starts: 1, leaseIn: 15 * MINUTE + 30 * SECOND });
  expect(await waiting()).toEqual([]);
});

it('lists nothing of a queue while shards run or a step waits for the mutex', async () => {
  await insert('other', { queue: 'priority', ...QUEUED });
  expect(await waiting()).toEqual(['priority other']);
  await insert('job/analyse', { queue: 'priority', leaseIn: 50 * SECOND });
  expect(await waiting()).toEqual([]);
});

it('lists nothing of the jobs queue while a step runs', async () => {
  await insert('waits', QUEUED);
  await insert('in work', RUNNING);
  expect(await waiting()).toEqual([]);
  await outboxOf(storage.db).settle('in work');
  expect(await waiting()).toEqual(['jobs waits']);
});

it('omits a step whose lease has expired, because the sweep sends it again', async () => {
  await insert('waits', QUEUED);
  await insert('lost', { starts: 1, leaseIn: -SECOND });
  expect(await waiting()).toEqual(['jobs waits']);
});

it('lists nothing of a queue while its batch waits for a slow server', async () => {
  await insert('recording', { queue: 'ingest', ...QUEUED });
  await insert('webhook', { queue: 'webhooks', ...QUEUED });
  expect(await waiting()).toEqual(['ingest recording', 'webhooks webhook']);
  await insert('recording in work', { queue: 'ingest', ...RUNNING });
  await insert('webhook in work', { queue: 'webhooks', starts: 1, leaseIn: 12 * MINUTE });
  expect(await waiting()).toEqual([]);
});

it('lists nothing after a database error', async () => {
  await storage.db.prepare('ALTER TABLE outbox RENAME TO away').run();
  expect(await waiting()).toEqual([]);
  await storage.db.prepare('ALTER TABLE away RENAME TO outbox').run();
});
