import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { NOW, useJobs } from '../../test/helpers/job-world.ts';
import { JobGone, keepLease } from './dispatch.ts';
import type { JobPorts } from './job-ports.ts';

/** Uses a real database. Only the interval between renewals uses fake timers. */
const world = useJobs();
/** Generous, because the machine may be busy. */
const POLLING = { timeout: 10_000 };
/** Ends of the renewed leases, milliseconds since the Unix epoch. */
let leases: number[];
let ports: JobPorts;
beforeEach(async () => {
  await world.running();
  leases = [];
  const { store } = world.ports;
  ports = world.withStore({
    keep: async (jobId, id, until) => {
      const isKept = await store.keep(jobId, id, until);
      if (isKept) leases.push(until);
      return isKept;
    },
  });
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
});
afterEach(() => {
  vi.useRealTimers();
});

function pass(ms: number): void {
  world.now += ms;
  vi.advanceTimersByTime(ms);
}
const message = () => `${world.id}/analyse`;
const end = (how: string) =>
  how === 'deleted'
    ? world.ports.store.remove(world.accountId, world.id, world.now)
    : world.ports.store.cancel(world.id, { code: 'canceled', message: 'x' }, world.now);

/** Work that ends when `finish` is called. */
function waiting() {
  let finish = (_result: string) => {};
  const result = new Promise<string>((done) => {
    finish = done;
  });
  const signals: AbortSignal[] = [];
  const kept = keepLease(ports, world.id, message(), (signal) => {
    signals.push(signal);
    return result;
  });
  kept.catch(() => undefined);
  return { kept, finish, signal: () => signals[0]! };
}

it('renews the lease of a step every ten seconds while its source stalls', async () => {
  const { kept, finish, signal } = waiting();
  const expected: number[] = [];
  for (let renewals = 1; renewals <= 9; renewals++) {
    pass(10_000);
    expected.push(NOW + renewals * 10_000 + 60_000);
    await expect.poll(() => leases, POLLING).toEqual(expected);
    expect(await world.row('analyse')).toMatchObject({ leaseUntil: expected.at(-1) });
  }
  expect(signal().aborted).toBe(false);
  finish('read');
  expect(await kept).toBe('read');
  expect(vi.getTimerCount()).toBe(0);
  pass(100_000);
  expect(await world.row('analyse')).toMatchObject({ leaseUntil: expected.at(-1) });
  expect(leases).toEqual(expected);
});

it.each(['canceled', 'deleted'])('aborts the work of a job that was %s', async (how) => {
  const { kept, signal } = waiting();
  pass(10_000);
  await expect.poll(() => leases, POLLING).toEqual([NOW + 70_000]);
  expect(signal().aborted).toBe(false);
  await end(how);
  pass(10_000);
  await expect(kept).rejects.toBeInstanceOf(JobGone);
  expect(signal().aborted).toBe(true);
  expect([leases, vi.getTimerCount()]).toEqual([[NOW + 70_000], 0]);
});

it('continues the work when one renewal fails', async () => {
  const { keep } = ports.store;
  let isDatabaseDown = true;
  ports = {
    ...ports,
    store: {
      ...ports.store,
      keep: (...args) => (isDatabaseDown ? Promise.reject(new Error('D1_ERROR: overloaded')) : keep(...args)),
    },
  };
  const { kept, finish } = waiting();
  pass(10_000);
  isDatabaseDown = false;
  pass(10_000);
  await expect.poll(() => leases, POLLING).toEqual([NOW + 80_000]);
  finish('read');
  expect(await kept).toBe('read');
});
