import { expect, it } from 'vitest';
import { Aside, afterwards } from './aside.ts';
import { MAX_DELIVERIES, type Verdict } from './handle.ts';
import type { JobPorts } from './ports.ts';

const DONE: Verdict = { kind: 'done' };
const after = (milliseconds: number) => new Promise<Verdict>((done) => setTimeout(() => done(DONE), milliseconds));

it('waits for short work, and lets long work go on beside the queue', async () => {
  const aside = new Aside(50);
  const rests: Promise<Verdict>[] = [];
  const goOn = (rest: Promise<Verdict>) => void rests.push(rest);
  expect(await aside.verdictOf(after(1), goOn)).toEqual(DONE);
  expect(rests).toEqual([]);
  expect(await aside.verdictOf(after(200), goOn)).toBeUndefined();
  expect(await Promise.all(rests)).toEqual([DONE]);
});

it('lets so many go on and no more: then the queue waits', async () => {
  const aside = new Aside(1);
  const rests: Promise<Verdict>[] = [];
  const verdicts: (Verdict | undefined)[] = [];
  for (let index = 0; index < 33; index++) {
    verdicts.push(await aside.verdictOf(after(400), (rest) => void rests.push(rest)));
  }
  expect(rests).toHaveLength(32);
  expect(verdicts.at(-1)).toEqual(DONE);
  await Promise.all(rests);
  expect(await aside.verdictOf(after(100), (rest) => void rests.push(rest))).toBeUndefined();
  await Promise.all(rests);
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
