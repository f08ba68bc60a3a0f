import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { pause, yieldUntilIdle } from './event-loop.ts';

/** Time that other work takes in each of the next waits, milliseconds. */
let delaysMs: number[];
let waits: number[];
/** After every real time: the module keeps the time of the last yield. */
let now = 2 ** 42;

beforeEach(async () => {
  delaysMs = [];
  waits = [];
  now += 60_000;
  vi.spyOn(Date, 'now').mockImplementation(() => now);
  vi.stubGlobal('scheduler', {
    wait: async (ms: number) => {
      now += ms + (ms > 0 ? (delaysMs.shift() ?? 0) : 0);
      if (ms > 0) waits.push(ms);
    },
  });
  await pause();
  waits = [];
  now += 50;
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

it('batch work waits until the thread is idle, a request at most 2 ms', async () => {
  delaysMs = [30, 30, 0];
  await yieldUntilIdle();
  expect(waits).toEqual([2, 2, 2]);
  now += 40;
  delaysMs = [30, 30];
  await pause();
  expect(waits).toEqual([2, 2, 2, 2]);
});

it('pauses after enough short units of work have added up', async () => {
  await pause();
  expect(waits).toHaveLength(1);
  for (let unit = 0; unit < 8; unit++) {
    now += 10;
    await pause();
  }
  expect(waits).toHaveLength(3);
});

it('batch work continues after a second even if the thread is never idle', async () => {
  delaysMs = new Array(100).fill(98);
  await yieldUntilIdle();
  expect(waits).toHaveLength(10);
});
