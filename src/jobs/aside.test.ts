import { expect, it } from 'vitest';
import { Aside, afterwards, putBack } from './aside.ts';
import { MAX_DELIVERIES, type Verdict } from './handle.ts';
import { messageSchema } from './messages.ts';
import type { JobPorts } from './ports.ts';

const DONE: Verdict = { kind: 'done' };
const after = (milliseconds: number) => new Promise<Verdict>((done) => setTimeout(() => done(DONE), milliseconds));

it('waits for short work, and lets long work go on beside the queue', async () => {
  const aside = new Aside(50);
  const rests: Promise<Verdict>[] = [];
  const goOn = (rest: Promise<Verdict>) => void rests.push(rest);
  expect(await aside.verdictOf('plan', 'a', after(1), goOn)).toEqual(DONE);
  expect(rests).toEqual([]);
  expect(await aside.verdictOf('plan', 'a', after(200), goOn)).toBeUndefined();
  expect(await Promise.all(rests)).toEqual([DONE]);
});

it('lets so many go on and no more: then the queue waits', async () => {
  const aside = new Aside(1);
  const rests: Promise<Verdict>[] = [];
  const verdicts: (Verdict | undefined)[] = [];
  for (let index = 0; index < 65; index++) {
    verdicts.push(await aside.verdictOf('plan', `account-${index % 5}`, after(400), (rest) => void rests.push(rest)));
  }
  expect(rests).toHaveLength(64);
  expect(verdicts.at(-1)).toEqual(DONE);
  await Promise.all(rests);
  expect(await aside.verdictOf('plan', 'a', after(100), (rest) => void rests.push(rest))).toBeUndefined();
  await Promise.all(rests);
});

it('has room for two dozen slow steps of an account, of each kind: one with slow sources stopped every plan and every webhook', async () => {
  const aside = new Aside(1);
  const rests: Promise<Verdict>[] = [];
  for (let index = 0; index < 24; index++) {
    expect(aside.hasRoom('plan', 'slow')).toBe(true);
    await aside.verdictOf('plan', 'slow', after(400), (rest) => void rests.push(rest));
  }
  expect(aside.hasRoom('plan', 'slow')).toBe(false);
  expect(aside.hasRoom('plan', 'other')).toBe(true);
  expect(aside.hasRoom('webhook', 'slow')).toBe(true);
  await Promise.all(rests);
  expect(aside.hasRoom('plan', 'slow')).toBe(true);
});

it('puts a message back that has no room without counting the delivery, and nobody takes it for lost meanwhile', async () => {
  const sent: unknown[] = [];
  const leases: unknown[] = [];
  const ports = {
    queue: { send: async (...message: unknown[]) => void sent.push(message) },
    store: { renewLease: async (...lease: unknown[]) => void leases.push(lease) },
    now: () => 1_000_000,
  } as unknown as JobPorts;
  const message = { step: 'plan', jobId: 'job', earlierDeliveries: 1 } as const;
  for (const waitedSeconds of [0, 100, 1000]) await putBack(ports, message, 2, 1_000_000 - 1000 * waitedSeconds);
  // The longer it has waited the longer it can: a thousand that are looked at every five seconds would be a load.
  expect(sent).toEqual([5, 25, 60].map((pauseSeconds) => [message, pauseSeconds]));
  expect(leases).toHaveLength(3);
});

it('puts a message back that was delivered for the first time so that it can be read: it was dropped, and waited a quarter of an hour for the sweep', async () => {
  const sent: unknown[] = [];
  const ports = {
    queue: { send: async (message: unknown) => void sent.push(message) },
    store: { renewLease: async () => {} },
    now: () => 0,
  } as unknown as JobPorts;
  const plan = { step: 'plan', jobId: 'job' } as const;
  const webhook = { step: 'webhook', jobId: 'job', attempt: 1, reason: 'http_timeout' } as const;
  for (const message of [plan, webhook]) await putBack(ports, message, 1, 0);
  expect(sent.map((message) => messageSchema.safeParse(message).data)).toEqual([
    { ...plan, earlierDeliveries: 0 },
    { ...webhook, earlierDeliveries: 0 },
  ]);
});

it('does with forgotten messages what the queue would have done', async () => {
  const sent: unknown[] = [];
  const failed: unknown[] = [];
  const ports = {
    queue: { send: async (...message: unknown[]) => void sent.push(message) },
    store: {
      outboxRow: async () => ({ message: { step: 'plan', jobId: 'job' }, starts: MAX_DELIVERIES }),
      fail: async (jobId: string, { code }: { code: string }) => {
        failed.push([jobId, code]);
        return false;
      },
    },
    log: () => {},
    now: () => 0,
  } as unknown as JobPorts;
  const message = { step: 'plan', jobId: 'job' } as const;
  await afterwards(ports, message, 1, DONE);
  expect(sent).toEqual([]);
  await afterwards(ports, message, 2, { kind: 'retry', delaySeconds: 7 });
  expect(sent).toEqual([[{ ...message, earlierDeliveries: 2 }, 7]]);
  await afterwards(ports, message, MAX_DELIVERIES, { kind: 'retry', delaySeconds: 7 });
  expect(sent).toHaveLength(1);
  expect(failed).toEqual([['job', 'internal']]);
});
