import assert from 'node:assert';
import { expect, it } from 'vitest';
import { startAgain } from './start-again.ts';

/** Fails so many times before it starts. */
function failing(times: number, fail: () => void) {
  let starts = 0;
  const start = async () => {
    if (starts++ < times) fail();
    return starts;
  };
  return { start, starts: () => starts };
}

it('starts again where Miniflare lost count of its synchronous calls, three times at most', async () => {
  const lostCount = () => assert(undefined === 1);
  expect(await startAgain(failing(2, lostCount).start)).toBe(3);
  const always = failing(9, lostCount);
  await expect(startAgain(always.start)).rejects.toThrow(assert.AssertionError);
  expect(always.starts()).toBe(3);
});

it('tells any other failure at once', async () => {
  const busy = failing(1, () => {
    throw new Error('the port is taken');
  });
  await expect(startAgain(busy.start)).rejects.toThrow('the port is taken');
  expect(busy.starts()).toBe(1);
});
