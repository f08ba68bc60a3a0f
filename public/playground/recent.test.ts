import { expect, it } from 'vitest';
import { Recent } from './recent.ts';

it('keeps the last of what comes before anybody takes it, and passes on what comes then, in order', () => {
  const recent = new Recent<number>(3);
  for (let item = 0; item < 10; item++) recent.put(item);
  const taken: number[] = [];
  recent.take((item) => taken.push(item));
  recent.put(10);
  recent.put(11);
  expect(taken).toEqual([7, 8, 9, 10, 11]);
});
