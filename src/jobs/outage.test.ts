import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { NOW, useJobs } from '../../test/helpers/job-world.ts';
import { startReceiver } from '../../test/helpers/webhook-receiver.ts';
import { MAX_STARTS } from './dispatch.ts';
import { handleDeadLetter, handleMessage, MAX_DELIVERIES } from './handle.ts';
import { createPulse, JobGone } from './lease.ts';
import type { Message, WebhookMessage } from './messages.ts';
import { Mutex } from './mutex.ts';
import type { JobPorts, JobStore } from './ports.ts';
import { resendLost } from './resend.ts';

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

/** As long as the queue tries. */
async function deliver(message: Message): Promise<void> {
  for (let attempt = 1; attempt <= MAX_DELIVERIES; attempt++) {
    await handleMessage(ports, new Mutex(() => 0), message, attempt).catch(() => undefined);
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

it('a webhook whose five deliveries met a database that was away is delivered by the sweep', async () => {
  const message = await told();
  isAway = true;
  await deliver(message);
  isAway = false;
  await handleDeadLetter(ports, message);
  expect(await world.row('webhook')).toMatchObject({ message, starts: 0 });
  world.now += 61_000;
  expect(await resendLost(ports, world.now)).toBe(1);
  expect(world.messages()).toEqual([message]);
  expect(await handleMessage(ports, new Mutex(() => 0), message, 1)).toEqual({ kind: 'done' });
  expect(receiver.received).toMatchObject([{ body: { jobId: world.id, status: 'succeeded' }, answered: 204 }]);
  expect(await world.row('webhook')).toBeUndefined();
});

it('a webhook that can never be sent is given up in the end', async () => {
  const message = await told();
  ports = { ...ports, webhookSecret: () => Promise.reject(new Error('broken')) };
  for (let round = 0; (await world.row('webhook')) && round < 10; round++) {
    await deliver(message);
    await handleDeadLetter(ports, message);
    expect((await world.row('webhook'))!.starts).toBeLessThanOrEqual(MAX_STARTS);
    world.now += 61_000;
    await resendLost(ports, world.now);
  }
  expect([receiver.received, await world.row('webhook')]).toEqual([[], undefined]);
});

it('a step that was never begun continues, and one that fails by itself fails its job', async () => {
  await world.create();
  const message = { step: 'ingest', jobId: world.id } as const;
  const getTagged = async () => {
    throw new Error('damaged');
  };
  ports = { ...ports, objects: { ...ports.objects, getTagged } };
  isAway = true;
  await deliver(message);
  isAway = false;
  await handleDeadLetter(ports, message);
  expect(await world.record()).toMatchObject({ status: 'created', error: undefined });
  world.now += 61_000;
  expect(await resendLost(ports, world.now)).toBe(1);
  await deliver(message);
  expect(await world.record()).toMatchObject({ status: 'running' });
  await handleDeadLetter(ports, message);
  expect(await world.record()).toMatchObject({ status: 'failed', error: { code: 'internal' } });
});

it('a dead letter whose row is gone fails no job', async () => {
  await world.running();
  await handleDeadLetter(ports, { step: 'ingest', jobId: world.id });
  expect(await world.record()).toMatchObject({ status: 'running', error: undefined });
});

it('a dead copy of a webhook does not take its next attempt with it', async () => {
  const first = await told();
  await world.ports.store.reschedule(`${world.id}/webhook`, first, { ...first, attempt: 2 }, NOW);
  await world.ports.store.renewLease(`${world.id}/webhook`, NOW + 900_000);
  await handleDeadLetter(ports, first);
  expect(await world.row('webhook')).toMatchObject({ message: { attempt: 2 }, leaseUntil: NOW + 900_000 });
});

it('one failed look at the job does not end an analysis', async () => {
  await world.running();
  const pulse = createPulse(ports, world.id, `${world.id}/shard/0`);
  isAway = true;
  world.now = NOW + 20_000;
  await pulse();
  isAway = false;
  world.now = NOW + 40_000;
  await pulse();
  expect(await world.row('shard/0')).toMatchObject({ leaseUntil: NOW + 100_000 });
  await world.ports.store.cancel(world.id, { code: 'canceled', message: 'x' }, world.now);
  world.now = NOW + 60_000;
  await expect(pulse()).rejects.toBeInstanceOf(JobGone);
});
