import { describe, expect, it } from 'vitest';
import { assignOptimally } from './numerics.ts';

/** Largest total of all assignments, by exhaustive search. */
function bestTotal(scores: readonly number[], rows: number, columns: number): number {
  let best = Number.NEGATIVE_INFINITY;
  const used = new Set<number>();
  const visit = (row: number, total: number, left: number): void => {
    if (row === rows) {
      if (left === 0) best = Math.max(best, total);
      return;
    }
    for (let column = 0; column < columns; column++) {
      if (used.has(column)) continue;
      used.add(column);
      visit(row + 1, total + scores[row * columns + column], left - 1);
      used.delete(column);
    }
    if (rows - row > left) visit(row + 1, total, left);
  };
  visit(0, 0, Math.min(rows, columns));
  return best;
}

describe('assignOptimally', () => {
  it('reaches the largest total of all assignments', () => {
    let state = 1;
    const random = () => {
      state = (state * 48271) % 2147483647;
      return state / 2147483647 - 0.5;
    };
    for (const [rows, columns] of [
      [1, 4],
      [2, 2],
      [4, 4],
      [4, 6],
      [6, 3],
      [3, 1],
    ]) {
      for (let trial = 0; trial < 20; trial++) {
        const scores = Array.from({ length: rows * columns }, random);
        const chosen = Array.from(assignOptimally(scores, rows, columns));
        const picked = chosen.filter((column) => column >= 0);
        expect(new Set(picked).size).toBe(Math.min(rows, columns));
        const total = chosen.reduce((sum, column, row) => sum + (column < 0 ? 0 : scores[row * columns + column]), 0);
        expect(total).toBeCloseTo(bestTotal(scores, rows, columns), 9);
      }
    }
  });

  it('assigns nothing without rows or columns', () => {
    expect(Array.from(assignOptimally([], 0, 3))).toEqual([]);
    expect(Array.from(assignOptimally([], 2, 0))).toEqual([-1, -1]);
  });
});

it('rejects scores that are NaN', () => {
  const scores = [1, 2, Number.NaN, Number.NaN];
  expect(() => assignOptimally(scores, 2, 2)).toThrow('finite');
});
