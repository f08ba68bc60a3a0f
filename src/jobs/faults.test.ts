import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { NOW, useJobs } from '../../test/helpers/job-world.ts';
import { startReceiver } from '../../test/helpers/webhook-receiver.ts';
import { createPulse, JobGone } from './dispatch.ts';
import { MAX_STARTS } from './faults.ts';
import { handleMessage } from './handle-message.ts';
import type { Message, WebhookMessage } from './job-messages.ts';
import type { JobPorts } from './job-ports.ts';
import type { JobStore } from './job-store.ts';
import { Mutex } from './mutex.ts';
import { resendLost } from './sweeps.ts';

/** Uses a real database whose calls fail while `isDatabaseDown`, and a real receiver of webhooks. */
const world = useJobs();
let receiver: Awaited<ReturnType<typeof startReceiver>>;
let isDatabaseDown: boolean;
let ports: JobPorts;
beforeAll(async () => {
  receiver = await startReceiver(async () => 204);
});
afterAll(() => receiver?.close());

const fail = async (): Promise<never> => {
  throw new Error('D1_ERROR: Network connection lost.');
};
beforeEach(async () => {
  // The sweep reads the messages of all jobs.
  await world.storage.db.prepare('DELETE FROM outbox').run();
  receiver.received.length = 0;
  isDatabaseDown = false;
  const method = (store: JobStore, name: string) => (isDatabaseDown ? fail : store[name as keyof JobStore]);
  ports = {
    ...world.ports,
    store: new Proxy(world.ports.store, { get: (store, name) => method(store, String(name)) }),
  };
});

/** Delivers the message five times, each time when it is due. */
async function deliver(message: Message): Promise<void> {
  for (let attempt = 1; attempt <= 5; attempt++) {
    const verdict = await handleMessage(ports, new Mutex(() => 0), message, attempt);
    if (verdict.kind === 'retry') world.now += verdict.delaySeconds * 1000;
  }
}

/** Creates a successful job. @returns its webhook message, which waits in the queue */
async function queueWebhook(): Promise<WebhookMessage> {
  await world.create({ webhook: receiver.url, webhookStatusOnly: true });
  const { store } = world.ports;
  await store.start(world.id, NOW);
  await store.succeed(world.id, { outputKey: 'o', billedSeconds: 1, creditSeconds: 1 }, NOW);
  await store.renewLease(`${world.id}/webhook`, NOW + 900_000);
  return { step: 'webhook', jobId: world.id, attempt: 0 };
}

it('a webhook whose deliveries failed during a database outage is delivered after a sweep', async () => {
  const message = await queueWebhook();
  isDatabaseDown = true;
  await deliver(message);
  isDatabaseDown = false;
  expect(await world.row('webhook')).toMatchObject({ message, starts: 0 });
  world.now = NOW + 900_001;
  expect(await resendLost(ports, world.now)).toBe(1);
  expect(world.messages()).toEqual([message]);
  expect(await handleMessage(ports, new Mutex(() => 0), message, 1)).toEqual({ kind: 'done' });
  expect(receiver.received).toMatchObject([{ body: { jobId: world.id, status: 'succeeded' }, answered: 204 }]);
  expect(await world.row('webhook')).toBeUndefined();
});

it('a webhook that can never be sent is given up', async () => {
  const message = await queueWebhook();
  ports = { ...ports, webhookSecret: () => Promise.reject(new Error('broken')) };
  await deliver(message);
  expect([receiver.received, await world.row('webhook')]).toEqual([[], undefined]);
});

it('faults of the database do not fail a job, exceptions of the step do', async () => {
  await world.create();
  const message = { step: 'ingest', jobId: world.id } as const;
  const sources = { ...ports.sources, open: () => Promise.reject(new Error('damaged')) };
  ports = { ...ports, sources };
  isDatabaseDown = true;
  for (let round = 0; round < MAX_STARTS; round++) await deliver(message);
  isDatabaseDown = false;
  expect(await world.record()).toMatchObject({ status: 'created', error: undefined });
  await deliver(message);
  expect(await world.record()).toMatchObject({ status: 'failed', error: { code: 'internal' } });
});

it('an analysis continues when one renewal of its lease fails', async () => {
  await world.running();
  const pulse = createPulse(ports, world.id, () =>
    ports.store.keep(world.id, `${world.id}/analyse`, world.now + 60_000),
  );
  isDatabaseDown = true;
  world.now = NOW + 20_000;
  await pulse();
  isDatabaseDown = false;
  world.now = NOW + 40_000;
  await pulse();
  expect(await world.row('analyse')).toMatchObject({ leaseUntil: NOW + 100_000 });
  await world.ports.store.cancel(world.id, { code: 'canceled', message: 'x' }, world.now);
  world.now = NOW + 60_000;
  await expect(pulse()).rejects.toBeInstanceOf(JobGone);
});
