import { expect, it } from 'vitest';
import { NOW, useJobs } from '../../test/helpers/job-world.ts';
import { Aside, afterwards, putBack } from './aside.ts';
import { MAX_DELIVERIES, type Verdict } from './handle.ts';
import { messageSchema } from './messages.ts';

/** Messages of jobs in a real database. */
const world = useJobs();
const QUARTER_MS = 15 * 60_000;
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
  await world.create();
  const message = { step: 'plan', jobId: world.id, earlierDeliveries: 1 } as const;
  const leases: (number | undefined)[] = [];
  for (const waitedSeconds of [0, 100, 1000]) {
    await putBack(world.ports, message, 2, NOW - 1000 * waitedSeconds);
    const row = await world.row('plan');
    expect(row?.starts).toBe(0);
    leases.push(row?.leaseUntil);
  }
  // The longer it has waited the longer it can: a thousand that are looked at every five seconds would be a load.
  const pauses = [5, 25, 60];
  expect(world.sent).toEqual(pauses.map((delaySeconds) => ({ message, delaySeconds })));
  expect(leases).toEqual(pauses.map((pauseSeconds) => NOW + 1000 * pauseSeconds + QUARTER_MS));
});

it('puts a message back that was delivered for the first time so that it can be read: it was dropped, and waited a quarter of an hour for the sweep', async () => {
  await world.create();
  const plan = { step: 'plan', jobId: world.id } as const;
  const webhook = { step: 'webhook', jobId: world.id, attempt: 1, reason: 'http_timeout' } as const;
  for (const message of [plan, webhook]) await putBack(world.ports, message, 1, NOW);
  const travelled = JSON.parse(JSON.stringify(world.messages())) as unknown[];
  expect(travelled.map((message) => messageSchema.safeParse(message).data)).toEqual([
    { ...plan, earlierDeliveries: 0 },
    { ...webhook, earlierDeliveries: 0 },
  ]);
});

it('does with forgotten messages what the queue would have done', async () => {
  await world.create();
  for (let begun = 0; begun < MAX_DELIVERIES; begun++) {
    await world.ports.store.recordStart(`${world.id}/plan`, NOW + 60_000);
  }
  const message = { step: 'plan', jobId: world.id } as const;
  await afterwards(world.ports, message, 1, DONE);
  expect(world.sent).toEqual([]);
  const sent = [{ message: { ...message, earlierDeliveries: 2 }, delaySeconds: 7 }];
  await afterwards(world.ports, message, 2, { kind: 'retry', delaySeconds: 7 });
  expect(world.sent).toEqual(sent);
  expect((await world.record()).status).toBe('created');
  await afterwards(world.ports, message, MAX_DELIVERIES, { kind: 'retry', delaySeconds: 7 });
  expect(world.sent).toEqual(sent);
  expect(await world.record()).toMatchObject({ status: 'failed', error: { code: 'internal' } });
});
