import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startStorage } from '../../test/helpers/storage.ts';
import type { DiarizeRequest } from '../contract/diarize.ts';
import { createJobStore } from '../platform/d1/job-rows.ts';
import { createQueues } from '../platform/queues.ts';
import { dispatch, dispatchAll } from './dispatch.ts';
import type { QueuePort } from './job-ports.ts';
import type { JobStore } from './job-store.ts';

/** Uses a real database and real queues. */
const NOW = 1000;
const DELAY_SECONDS = 300;
const DUE_AT = 301_000;
const QUARTER_MS = 15 * 60_000;
const MANY = 150;

let storage: Awaited<ReturnType<typeof startStorage>>;
let store: JobStore;
let queue: QueuePort;
/** Number of messages in each send, and the leases of the job's messages at that time. */
let sent: { readonly messages: number; readonly leases: readonly number[] }[];
let jobId: string;
let made = 0;
beforeAll(async () => {
  storage = await startStorage();
  store = createJobStore(storage.db);
  await storage.db.prepare(`INSERT INTO accounts (id, name, subscribed, created_at) VALUES ('a', 'a', 1, 0)`).run();
});
afterAll(() => storage?.stop());

const leases = async () => (await store.overdue(Infinity, 1000, { jobId })).rows.map(({ leaseUntil }) => leaseUntil);
const counted = (values: readonly number[]) => {
  const counts = new Map<number, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return Object.fromEntries(counts);
};

beforeEach(async () => {
  const real = createQueues(storage.queues);
  sent = [];
  const record = async (messages: number) => void sent.push({ messages, leases: await leases() });
  queue = {
    send: async (message, delaySeconds) => {
      await record(1);
      await real.send(message, delaySeconds);
    },
    sendAll: async (messages) => {
      await record(messages.length);
      await real.sendAll(messages);
    },
  };
  jobId = `job-${made++}`;
  const request = { url: 'https://example.com/a.wav' } as DiarizeRequest;
  await store.create({ accountId: 'a', kind: 'diarize', request, id: jobId, now: 0 });
});

const failSend = async () => {
  throw new Error('the queue is unavailable');
};
const portsWith = (port: QueuePort) => ({ store, queue: port, log: () => {}, now: () => NOW });

describe('a message', () => {
  const send = (port: QueuePort) => dispatch(portsWith(port), { step: 'ingest', jobId }, DELAY_SECONDS);

  it('is leased until 15 minutes after its due time, before it is sent', async () => {
    await send(queue);
    expect(sent).toEqual([{ messages: 1, leases: [DUE_AT + QUARTER_MS] }]);
    expect(await leases()).toEqual([DUE_AT + QUARTER_MS]);
  });

  it('that could not be sent is leased only until its due time', async () => {
    await send({ ...queue, send: failSend });
    expect(await leases()).toEqual([DUE_AT]);
  });

  it('is sent even if its lease cannot be renewed', async () => {
    const ports = portsWith(queue);
    const broken = { ...store, renewLease: () => Promise.reject(new Error('D1_ERROR: overloaded')) };
    await dispatch({ ...ports, store: broken }, { step: 'ingest', jobId });
    expect(sent).toHaveLength(1);
  });
});

describe('several messages', () => {
  const send = async (port: QueuePort) => {
    const ids = Array.from({ length: MANY }, (_, n) => `${jobId}-${n}`);
    const insert = `INSERT INTO outbox (id, job_id, queue, body, due_at, lease_until) VALUES (?1 || '/ingest', ?2, 'ingest', ?3, 0, 0)`;
    await storage.db.batch([
      storage.db.prepare('DELETE FROM outbox'),
      ...ids.map((id) => storage.db.prepare(insert).bind(id, jobId, JSON.stringify({ step: 'ingest', jobId: id }))),
    ]);
    const messages = ids.map((id) => ({ step: 'ingest', jobId: id }) as const);
    await dispatchAll(
      portsWith(port),
      messages.map((message) => ({ message, delaySeconds: DELAY_SECONDS })),
    );
  };

  it('are leased and sent in batches of 100', async () => {
    await send(queue);
    expect(sent.map(({ messages }) => messages)).toEqual([100, 50]);
    expect(counted(sent[0]!.leases)).toMatchObject({ [DUE_AT + QUARTER_MS]: 100 });
    expect(counted(await leases())).toEqual({ [DUE_AT + QUARTER_MS]: MANY });
  });

  it('that could not be sent are all leased only until their due time', async () => {
    await send({ ...queue, sendAll: failSend });
    expect(counted(await leases())).toEqual({ [DUE_AT]: MANY });
  });
});
