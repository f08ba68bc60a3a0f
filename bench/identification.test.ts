import { describe, expect, it } from 'vitest';
import { equalErrorRate } from './identification.ts';

const trials = (...rows: [score: number, isSame: boolean][]) => rows.map(([score, isSame]) => ({ score, isSame }));

describe('equalErrorRate', () => {
  it('is 0 for scores that separate the pairs, and 50 for scores without information', () => {
    expect(equalErrorRate(trials([90, true], [80, true], [10, false]))).toBe(0);
    expect(equalErrorRate(trials([90, true], [10, true], [90, false], [10, false]))).toBe(50);
  });

  it('rejects pairs of equal score together, in any order', () => {
    const pairs = trials([7, false], [7, false], [7, true], [7, true]);
    expect(equalErrorRate(pairs)).toBe(50);
    expect(equalErrorRate([...pairs].reverse())).toBe(50);
    const partly = trials([0, false], [0, true], [50, false], [50, true], [100, true]);
    expect(equalErrorRate(partly)).toBe(equalErrorRate([...partly].reverse()));
  });

  it('is interpolated between two scores, as in training/evaluation', () => {
    // evaluation.scoring.weighted_eer([1, 2, 3, 4, 5], [F, T, F, F, T])
    expect(equalErrorRate(trials([1, false], [2, true], [3, false], [4, false], [5, true]))).toBeCloseTo(50, 12);
    // weighted_eer([0, 0, 0, 50, 50, 100], [F, F, T, F, T, T])
    expect(equalErrorRate(trials([0, false], [0, false], [0, true], [50, false], [50, true], [100, true]))).toBeCloseTo(
      100 / 3,
      12,
    );
  });

  it('is NaN without both kinds of pairs', () => {
    expect(equalErrorRate(trials([1, true]))).toBeNaN();
    expect(equalErrorRate([])).toBeNaN();
  });
});
