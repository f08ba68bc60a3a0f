import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { NOW, useJobs } from '../../test/helpers/job-world.ts';
import { startReceiver } from '../../test/helpers/webhook-receiver.ts';
import { handleMessage } from './handle-message.ts';
import type { WebhookPort } from './job-ports.ts';
import type { OutboxRow } from './job-store.ts';
import { Mutex } from './mutex.ts';
import { signedContent, signWebhook } from './webhook-signature.ts';
import { outputKey } from './work-keys.ts';

/** Uses a real database, a real bucket and a real HTTP receiver. */
const world = useJobs();
const DAY = 24 * 3600 * 1000;
const QUARTER_MS = 15 * 60_000;
let receiver: Awaited<ReturnType<typeof startReceiver>>;
/** Status that the receiver answers with. */
let status: number;
/** Outbox row during the delivery. */
let rowDuringDelivery: OutboxRow | undefined;
beforeAll(async () => {
  receiver = await startReceiver(async () => {
    rowDuringDelivery = await row();
    return status;
  });
});
afterAll(() => receiver?.close());

const row = () => world.row('webhook');
/** Delivers an attempt at its due time. */
async function deliver(attempt: number, webhook: WebhookPort = world.ports.webhook): Promise<void> {
  world.now = Math.max(world.now, (await row())?.dueAt ?? 0);
  const message = { step: 'webhook', jobId: world.id, attempt, reason: 'http_error' } as const;
  expect(await handleMessage({ ...world.ports, webhook }, new Mutex(() => 0), message, 1)).toEqual({ kind: 'done' });
}

/** Creates a job that ends at `NOW`, with an output or with `error`, and whose webhook is not delivered yet. */
async function endJob(error?: { readonly code: string; readonly message: string }): Promise<void> {
  world.another();
  await world.create({ webhook: receiver.url });
  const { store, objects } = world.ports;
  await store.start(world.id, NOW);
  await objects.put(outputKey(world.id), new TextEncoder().encode('{}'));
  const outcome = { outputKey: outputKey(world.id), billedSeconds: 1, creditSeconds: 1 };
  expect(await (error ? store.fail(world.id, error, NOW) : store.succeed(world.id, outcome, NOW))).toBe(true);
}

beforeEach(async () => {
  receiver.received.length = 0;
  status = 200;
  rowDuringDelivery = undefined;
});

describe('deliverWebhook', () => {
  it('also signs with the previous secret while that one is accepted', async () => {
    await endJob();
    const previousWebhookSecret = async (accountId: string, version: number) => `previous ${accountId} ${version}`;
    const message = { step: 'webhook', jobId: world.id, attempt: 0 } as const;
    await handleMessage({ ...world.ports, previousWebhookSecret }, new Mutex(() => 0), message, 1);
    const [delivery] = receiver.received;
    const { accountId } = (await world.ports.store.find(world.id))!;
    const { headers, body } = delivery!;
    const timestamp = Number(headers['x-request-timestamp']);
    const { content } = signedContent(timestamp, [new TextEncoder().encode(JSON.stringify(body))]);
    const secrets = [await world.ports.webhookSecret(accountId, 1), await previousWebhookSecret(accountId, 1)];
    const signatures = await Promise.all(secrets.map((secret) => signWebhook(secret, content)));
    expect([headers['x-signature'], headers['x-signature-previous']]).toEqual(signatures);
  });

  it('retries at once, after one minute and after five minutes, then stops', async () => {
    await endJob();
    status = 500;
    const next: unknown[] = [];
    for (const attempt of [0, 1, 2, 3]) {
      await deliver(attempt);
      const after = await row();
      next.push(after && { message: after.message, inSeconds: (after.dueAt - world.now) / 1000 });
      // The lease covers the wait in the queue and a slow receiver, so that no copy is sent meanwhile.
      expect(rowDuringDelivery).toMatchObject({ message: { attempt }, starts: 1, leaseUntil: world.now + QUARTER_MS });
    }
    const message = (attempt: number) => ({ step: 'webhook', jobId: world.id, attempt, reason: 'http_error' });
    expect(next).toEqual([
      { message: message(1), inSeconds: 0 },
      { message: message(2), inSeconds: 60 },
      { message: message(3), inSeconds: 300 },
      undefined,
    ]);
    expect(world.sent).toEqual([
      { message: message(1), delaySeconds: 0 },
      { message: message(2), delaySeconds: 60 },
      { message: message(3), delaySeconds: 300 },
    ]);
    expect(receiver.received.map(({ headers }) => headers['x-retry-num'])).toEqual([undefined, '1', '2', '3']);
  });

  it.each([200, 204, 299])('accepts status %i as delivered', async (code) => {
    await endJob();
    status = code;
    await deliver(0);
    expect(receiver.received).toMatchObject([{ body: { jobId: world.id }, answered: code }]);
    expect([await row(), world.sent]).toEqual([undefined, []]);
  });

  it.each([300, 304, 404])('retries after status %i', async (code) => {
    await endJob();
    status = code;
    await deliver(0);
    expect(receiver.received).toMatchObject([{ answered: code }]);
    expect(await row()).toMatchObject({ message: { attempt: 1 }, dueAt: NOW });
  });

  it('retries after a status below 200', async () => {
    await endJob();
    const post: WebhookPort['post'] = async (...parameters) => {
      await world.ports.webhook.post(...parameters);
      return { ok: true, value: { status: 199 } };
    };
    await deliver(0, { post });
    expect(await row()).toMatchObject({ message: { attempt: 1 } });
  });

  it('sends nothing for a duplicate message of an earlier attempt', async () => {
    await endJob();
    status = 500;
    await deliver(0);
    const nextAttempt = await row();
    await deliver(0);
    expect(receiver.received).toHaveLength(1);
    expect(await row()).toEqual(nextAttempt);
  });

  it('sends nothing for a job that has not ended', async () => {
    await world.create({ webhook: receiver.url });
    await world.ports.store.start(world.id, NOW);
    const message = { step: 'webhook', jobId: world.id, attempt: 0 } as const;
    await world.storage.db
      .prepare(
        `INSERT INTO outbox (id, job_id, queue, body, due_at, lease_until) VALUES (?1, ?2, 'webhooks', ?3, 0, 0)`,
      )
      .bind(`${world.id}/webhook`, world.id, JSON.stringify(message))
      .run();
    expect(await row()).toMatchObject({ message });
    await deliver(0);
    expect([receiver.received, await row()]).toEqual([[], undefined]);
  });

  it.each([
    ['succeeded', undefined, {}],
    ['failed', { code: 'no_speech', message: 'No speech.' }, { code: 'no_speech', error: 'No speech.' }],
  ])('includes the output of a %s job only in its first 24 hours', async (jobStatus, error, output) => {
    const bodyAt = async (now: number) => {
      world.now = NOW;
      await endJob(error);
      world.now = now;
      await deliver(0);
      return receiver.received.at(-1)!.body;
    };
    const before = await bodyAt(NOW + DAY - 1);
    expect(before).toMatchObject({ jobId: world.id, status: jobStatus });
    expect(before.output).toEqual(output);
    const after = await bodyAt(NOW + DAY);
    expect(after).toMatchObject({ jobId: world.id, status: jobStatus });
    expect(after).not.toHaveProperty('output');
  });
});
