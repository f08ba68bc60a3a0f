import { expect, it } from 'vitest';
import { Rows } from './rows.ts';

it('keeps vectors in their order, however many there are', () => {
  const rows = new Rows(3);
  const expected: number[] = [];
  for (let row = 0; row < 300; row++) {
    const vector = [row, -row, row / 2];
    rows.take(Float32Array.from(vector));
    expected.push(...vector);
  }
  expect(rows.finish()).toEqual(Float32Array.from(expected));
  expect(new Rows(3).finish()).toEqual(new Float32Array(0));
});
