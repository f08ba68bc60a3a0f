import { expect, it } from 'vitest';
import { Ring } from './stream-buffer.ts';

const numbered = (from: number, count: number) => Float32Array.from({ length: 2 * count }, (_, i) => 2 * from + i);

it('keeps the last rows by number for any push sizes', () => {
  const ring = new Ring(2, 10);
  let end = 0;
  for (const rows of [3, 0, 7, 1, 10, 4, 25, 2, 9]) {
    ring.push(numbered(end, rows));
    end += rows;
    expect([ring.start, ring.end]).toEqual([Math.max(0, end - 10), end]);
    expect(ring.view(ring.start, end)).toEqual(numbered(ring.start, end - ring.start));
    if (end > ring.start) expect(ring.view(end - 1, end)).toEqual(numbered(end - 1, 1));
  }
});

it('rejects a view of dropped or future rows', () => {
  const ring = new Ring(1, 4);
  ring.push(new Float32Array(6));
  expect(() => ring.view(1, 3)).toThrow(RangeError);
  expect(() => ring.view(5, 7)).toThrow(RangeError);
});

it('continues from a saved state', () => {
  const ring = new Ring(2, 10);
  ring.push(numbered(0, 17));
  const restored = new Ring(2, 10);
  restored.restore(ring.save());
  for (const each of [ring, restored]) each.push(numbered(17, 5));
  expect(restored.save()).toEqual(ring.save());
  expect(restored.view(12, 22)).toEqual(numbered(12, 10));
});
