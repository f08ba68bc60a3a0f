import { describe, expect, it } from 'vitest';
import type { DiarizationError } from './der.ts';
import { meanOverSets, rateOfSet } from './means.ts';

const error = (missSeconds: number, confusionSeconds = 0): DiarizationError => ({
  totalSeconds: 100,
  missSeconds,
  falseAlarmSeconds: 0,
  confusionSeconds,
  referenceSpeakers: 2,
  hypothesisSpeakers: 2,
});

describe('meanOverSets', () => {
  it('weighs all sets equally, and leaves simulated conversations out', () => {
    const sets = [
      { set: 'real', errors: [error(10), error(20), error(30)] },
      { set: 'short', errors: [error(40)] },
      { set: 'simulated', errors: [error(90)] },
    ];
    const { mean, low, high } = meanOverSets(sets);
    expect(mean).toBe(30);
    expect(low).toBeGreaterThanOrEqual(25);
    expect(low).toBeLessThan(28);
    expect(high).toBeGreaterThan(32);
    expect(high).toBeLessThanOrEqual(35);
    expect(meanOverSets(sets)).toEqual({ mean, low, high });
  });

  it('has an empty interval if all recordings have the same error', () => {
    expect(meanOverSets([{ set: 'real', errors: [error(10), error(10)] }])).toEqual({ mean: 10, low: 10, high: 10 });
  });
});

describe('rateOfSet', () => {
  it('uses only the confusion of monologues', () => {
    expect(rateOfSet({ set: 'monologues', errors: [error(12, 3)] })).toBe(3);
    expect(rateOfSet({ set: 'real', errors: [error(12, 3)] })).toBe(15);
  });
});
