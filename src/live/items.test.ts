import { expect, it } from 'vitest';
import { type Item, thinned } from './items.ts';

/** Items of two seconds that sound like an axis each, by label. */
const itemsOf = (labels: readonly number[]): Item[] =>
  labels.map((label, look) => ({
    label,
    look,
    seconds: 2,
    embedding: Float32Array.from({ length: 4 }, (_, d) => (d === label ? 1 : 0)),
  }));

const labelsOf = (items: readonly Item[]) => items.map(({ label }) => label);
const secondsOf = (items: readonly Item[]) => items.reduce((sum, { seconds }) => sum + seconds, 0);
const repeated = (count: number, ...labels: number[]) => Array.from({ length: count }, () => labels).flat();

it('leaves few items as they are', () => {
  const items = itemsOf([0, 0, 1]);
  expect(thinned(items, 3)).toEqual(items);
});

it('joins neighbours of one speaker, the oldest first, and no more of them than need be', () => {
  const items = thinned(itemsOf(repeated(12, 0, 0, 1)), 33);
  expect(labelsOf(items)).toEqual([...repeated(3, 0, 1), ...repeated(9, 0, 0, 1)]);
  expect(items[0]).toMatchObject({ seconds: 4, look: -1, embedding: Float32Array.of(1, 0, 0, 0) });
  expect(secondsOf(items)).toBe(72);
});

it('keeps who was heard at the beginning, however long others alternate: the oldest went, until nobody knew them', () => {
  let items = itemsOf(repeated(20, 2));
  for (let round = 0; round < 100; round++) items = thinned([...items, ...itemsOf(repeated(5, 0, 1))], 40);
  expect(labelsOf(items).filter((label) => label === 2)).toHaveLength(10);
  expect(items).toHaveLength(40);
  expect(secondsOf(items)).toBe(2 * (20 + 1000));
});

it('leaves each of more speakers than may be kept at least one, as long as anybody has two', () => {
  const items = thinned(itemsOf([0, 1, 2, 0, 3, 1]), 4);
  expect(labelsOf(items)).toEqual([0, 1, 2, 3]);
  expect(labelsOf(thinned(items, 3))).toEqual([1, 2, 3]);
});
