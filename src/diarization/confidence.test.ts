import { describe, expect, it } from 'vitest';
import { calibrate, decisionProbability } from './confidence.ts';

describe('decisionProbability', () => {
  it('is the product over all speakers', () => {
    expect(decisionProbability([0.9, 0.2], [1, 0])).toBeCloseTo(0.9 * 0.8);
    expect(decisionProbability([0.9, 0.2], [1, 1])).toBeCloseTo(0.9 * 0.2);
    expect(decisionProbability([], [])).toBe(1);
  });
});

describe('calibrate', () => {
  it('changes nothing by slope 1 and offset 0, and stays between 0 and 1', () => {
    for (const raw of [0.01, 0.3, 0.5, 0.99]) expect(calibrate(raw, { slope: 1, offset: 0 })).toBeCloseTo(raw, 9);
    for (const raw of [0, 1, -0.1, 1.0001]) {
      const value = calibrate(raw, { slope: 1, offset: 0 });
      expect(value).toBeGreaterThan(0);
      expect(value).toBeLessThan(1);
    }
  });

  it('never turns the order round', () => {
    const values = [0.1, 0.4, 0.6, 0.9].map((raw) => calibrate(raw, { slope: 0.4, offset: 1 }));
    expect([...values].sort((a, b) => a - b)).toEqual(values);
  });
});
