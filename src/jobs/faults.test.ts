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

/** A database that is away for a minute: a real one, whose calls fail meanwhile. Webhooks go to a real receiver. */
const world = useJobs();
let receiver: Awaited<ReturnType<typeof startReceiver>>;
let isAway: boolean;
let ports: JobPorts;
beforeAll(async () => {
  receiver = await startReceiver(async () => 204);
});
afterAll(() => receiver?.close());

const away = async (): Promise<never> => {
  throw new Error('D1_ERROR: Network connection lost.');
};
beforeEach(async () => {
  // The sweep looks at the messages of all jobs.
  await world.storage.db.prepare('DELETE FROM outbox').run();
  receiver.received.length = 0;
  isAway = false;
  const method = (store: JobStore, name: string) => (isAway ? away : store[name as keyof JobStore]);
  ports = {
    ...world.ports,
    store: new Proxy(world.ports.store, { get: (store, name) => method(store, String(name)) }),
  };
});

/** Five deliveries, each when it is due. */
async function deliver(message: Message): Promise<void> {
  for (let attempt = 1; attempt <= 5; attempt++) {
    const verdict = await handleMessage(ports, new Mutex(() => 0), message, attempt);
    if (verdict.kind === 'retry') world.now += verdict.delaySeconds * 1000;
  }
}

/** A job that has succeeded, and whose webhook has been sent to its queue. */
async function told(): Promise<WebhookMessage> {
  await world.create({ webhook: receiver.url, webhookStatusOnly: true });
  const { store } = world.ports;
  await store.start(world.id, NOW);
  await store.succeed(world.id, { outputKey: 'o', billedSeconds: 1, creditSeconds: 1 }, NOW);
  await store.renewLease(`${world.id}/webhook`, NOW + 900_000);
  return { step: 'webhook', jobId: world.id, attempt: 0 };
}

it('a webhook whose deliveries met a database that was away is delivered by the sweep', async () => {
  const message = await told();
  isAway = true;
  await deliver(message);
  isAway = false;
  expect(await world.row('webhook')).toMatchObject({ message, starts: 0 });
  world.now = NOW + 900_001;
  expect(await resendLost(ports, world.now)).toBe(1);
  expect(world.messages()).toEqual([message]);
  expect(await handleMessage(ports, new Mutex(() => 0), message, 1)).toEqual({ kind: 'done' });
  expect(receiver.received).toMatchObject([{ body: { jobId: world.id, status: 'succeeded' }, answered: 204 }]);
  expect(await world.row('webhook')).toBeUndefined();
});

it('a webhook that can never be sent is given up in the end', async () => {
  const message = await told();
  ports = { ...ports, webhookSecret: () => Promise.reject(new Error('broken')) };
  await deliver(message);
  expect([receiver.received, await world.row('webhook')]).toEqual([[], undefined]);
});

it('a step that was never begun continues, and one that fails by itself fails its job', async () => {
  await world.create();
  const message = { step: 'ingest', jobId: world.id } as const;
  const sources = { ...ports.sources, open: () => Promise.reject(new Error('damaged')) };
  ports = { ...ports, sources };
  isAway = true;
  for (let round = 0; round < MAX_STARTS; round++) await deliver(message);
  isAway = false;
  expect(await world.record()).toMatchObject({ status: 'created', error: undefined });
  await deliver(message);
  expect(await world.record()).toMatchObject({ status: 'failed', error: { code: 'internal' } });
});

it('one failed look at the job does not end an analysis', async () => {
  await world.running();
  const pulse = createPulse(ports, world.id, () =>
    ports.store.keep(world.id, `${world.id}/analyse`, world.now + 60_000),
  );
  isAway = true;
  world.now = NOW + 20_000;
  await pulse();
  isAway = false;
  world.now = NOW + 40_000;
  await pulse();
  expect(await world.row('analyse')).toMatchObject({ leaseUntil: NOW + 100_000 });
  await world.ports.store.cancel(world.id, { code: 'canceled', message: 'x' }, world.now);
  world.now = NOW + 60_000;
  await expect(pulse()).rejects.toBeInstanceOf(JobGone);
});
