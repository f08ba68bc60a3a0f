import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { pause, yieldToOthers } from './event-loop.ts';

/** Time that others use the thread for in each of the next waits, ms. */
let losses: number[];
let waits: number[];
let now = 1_000_000;

beforeEach(async () => {
  losses = [];
  waits = [];
  now += 60_000;
  vi.spyOn(Date, 'now').mockImplementation(() => now);
  vi.stubGlobal('scheduler', {
    wait: async (ms: number) => {
      now += ms + (ms > 0 ? (losses.shift() ?? 0) : 0);
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

it('batch work waits until the thread is idle, a request 2 ms at most', async () => {
  losses = [30, 30, 0];
  await yieldToOthers();
  expect(waits).toEqual([2, 2, 2]);
  now += 40;
  losses = [30, 30];
  await pause();
  expect(waits).toEqual([2, 2, 2, 2]);
});

it('short pieces of work add up: a pause after each did not let others catch up', async () => {
  await pause();
  expect(waits).toHaveLength(1);
  for (let piece = 0; piece < 8; piece++) {
    now += 10;
    await pause();
  }
  expect(waits).toHaveLength(3);
});

it('batch work goes on after a second beside others that never stop', async () => {
  losses = new Array(100).fill(98);
  await yieldToOthers();
  expect(waits).toHaveLength(10);
});
