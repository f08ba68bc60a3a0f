import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { JobGone, keepingLease, keepLease } from './lease.ts';
import type { JobPorts } from './ports.ts';

beforeEach(() => {
  vi.useFakeTimers({ now: 0 });
});
afterEach(() => {
  vi.useRealTimers();
});

/** A source that does not answer, read for a job. */
function stalled() {
  const leases: number[] = [];
  const state = { status: 'running', isClosed: false };
  const ports = {
    store: {
      find: async () => (state.status === 'deleted' ? undefined : { id: 'job', status: state.status }),
      renewLease: async (_id: string, until: number) => void leases.push(until),
    },
    log: () => {},
    now: () => Date.now(),
  } as unknown as JobPorts;
  const source = {
    sizeBytes: 10,
    read: () => new Promise<Uint8Array>((done) => setTimeout(() => done(new Uint8Array(10)), 100_000)),
    close: () => {
      state.isClosed = true;
    },
  };
  return { ports, state, leases, source: keepingLease(ports, 'job', 'job/shard/0', source) };
}

it('the lease of a step does not run out while its source stalls: the step was sent again beside itself', async () => {
  const { leases, source, state } = stalled();
  const read = source.read(0, 10);
  await vi.advanceTimersByTimeAsync(100_000);
  expect(await read).toHaveLength(10);
  expect(leases).toEqual(Array.from({ length: leases.length }, (_, i) => (i + 1) * 10_000 + 60_000));
  expect(leases.length).toBeGreaterThanOrEqual(9);
  await vi.advanceTimersByTimeAsync(100_000);
  expect(leases.length).toBeLessThanOrEqual(10);
  source.close?.();
  expect(state.isClosed).toBe(true);
});

it('work whose job was canceled is told that nobody waits for it: a download went on to its end', async () => {
  const { ports, state } = stalled();
  const signals: AbortSignal[] = [];
  const work = keepLease(ports, 'job', 'job/plan', (signal) => {
    signals.push(signal);
    return new Promise<never>(() => undefined);
  }).catch((error: unknown) => error);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(signals[0]?.aborted).toBe(false);
  state.status = 'canceled';
  await vi.advanceTimersByTimeAsync(10_000);
  expect(await work).toBeInstanceOf(JobGone);
  expect(signals[0]?.aborted).toBe(true);
});

it.each(['canceled', 'deleted'])('a read ends soon after its job was %s', async (status) => {
  const { source, state } = stalled();
  const read = source.read(0, 10).catch((error: unknown) => error);
  state.status = status;
  await vi.advanceTimersByTimeAsync(10_000);
  expect(await read).toBeInstanceOf(JobGone);
});
