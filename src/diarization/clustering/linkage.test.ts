import { expect, it } from 'vitest';
import { averageLinkage, cosineDistances, largeClusters } from './linkage.ts';

/** The number that a long recording is reduced to. */
const ITEMS = 2400;

/** Pseudorandom distances, the same in every call. */
function someDistances(): Float32Array {
  let state = 1;
  return Float32Array.from({ length: (ITEMS * (ITEMS - 1)) / 2 }, () => {
    state = (state * 16_807) % 2_147_483_647;
    return state / 2_147_483_647;
  });
}

it('pauses about every 20 ms while it clusters the items of a long recording', async () => {
  let pauses = 0;
  const weights = new Float64Array(ITEMS).fill(1);
  const merges = await averageLinkage(someDistances(), weights, async () => {
    pauses++;
  });
  // About 130 ms of work.
  expect(pauses).toBeGreaterThanOrEqual(6);
  expect(pauses).toBeLessThan(30);
  expect(await averageLinkage(someDistances(), weights, async () => undefined)).toEqual(merges);
});

const DIMENSION = 5;

it.each([1, 2, 3, 4, 5, 6, 7, 11, 130])(
  'computes the distance of each pair of %i rows, in the order of scipy',
  async (count) => {
    const embeddings = Float32Array.from({ length: count * DIMENSION }, (_, index) => Math.sin(index * index) / 2);
    const expected: number[] = [];
    for (let i = 0; i < count; i++) {
      for (let j = i + 1; j < count; j++) {
        let product = 0;
        for (let d = 0; d < DIMENSION; d++) product += embeddings[i * DIMENSION + d] * embeddings[j * DIMENSION + d];
        expected.push(Math.max(0, Math.fround(1 - Math.fround(product))));
      }
    }
    let pauses = 0;
    const pause = async () => void pauses++;
    const rows = { count, dimension: DIMENSION };
    expect(Array.from(await cosineDistances(rows, embeddings, pause))).toEqual(expected);
    expect(pauses).toBe(Math.floor(count / 64));
  },
);

it('orders clusters by speech and keeps the largest even if it is too small', () => {
  expect(largeClusters(Int32Array.of(0, 1, 1, 2), Float64Array.of(3, 2, 2, 0.1), 1, 0.06)).toEqual([1, 0]);
  expect(largeClusters(Int32Array.of(0, 1), Float64Array.of(0.2, 0.3), 1, 0.06)).toEqual([1]);
});
