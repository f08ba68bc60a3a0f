import { expect, it } from 'vitest';
import { linkage } from './linkage.ts';

/** As many as a long recording is reduced to. */
const ITEMS = 2400;

/** The same made-up distances every time. */
function someDistances(): Float32Array {
  let state = 1;
  return Float32Array.from({ length: (ITEMS * (ITEMS - 1)) / 2 }, () => {
    state = (state * 16_807) % 2_147_483_647;
    return state / 2_147_483_647;
  });
}

it('pauses every some ten milliseconds in a long recording, and clusters it the same: it held an isolate for 150 and more', async () => {
  let pauses = 0;
  const merges = await linkage(someDistances(), ITEMS, 'average', {
    pause: async () => {
      pauses++;
    },
  });
  // Some 130 ms of work.
  expect(pauses).toBeGreaterThanOrEqual(6);
  expect(pauses).toBeLessThan(30);
  expect(await linkage(someDistances(), ITEMS, 'average')).toEqual(merges);
});
