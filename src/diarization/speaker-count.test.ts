import { describe, expect, it } from 'vitest';
import { confidenceFactor, joinCounts, speakerCountOf } from './speaker-count.ts';

const UNBOUNDED = { min: 1, max: 100 };

describe('speakerCountOf', () => {
  it('is the surer the further the count is from changing', () => {
    const sure = speakerCountOf(3, { fewer: 5, more: 5 }, UNBOUNDED);
    const doubtful = speakerCountOf(3, { fewer: 1, more: 1 }, UNBOUNDED);
    expect(sure.confidence).toBeGreaterThan(90);
    expect(doubtful.confidence).toBeLessThan(50);
    expect(doubtful.alternatives.map(({ count }) => count)).toEqual([4, 2].sort((a, b) => a - b));
    expect(confidenceFactor(sure)).toBeGreaterThan(confidenceFactor(doubtful));
  });

  it('sums to at most 100, with the most likely alternative first', () => {
    for (const fewer of [1, 2, 3, 4, 5]) {
      for (const more of [1, 2, 3, 4, 5]) {
        const { confidence, alternatives } = speakerCountOf(4, { fewer, more }, UNBOUNDED);
        const shares = alternatives.map((one) => one.confidence);
        expect(confidence + shares.reduce((sum, value) => sum + value, 0)).toBeLessThanOrEqual(100);
        expect(shares).toEqual([...shares].sort((a, b) => b - a));
        expect(alternatives.length).toBeLessThanOrEqual(2);
      }
    }
  });

  it('has no number outside the bounds of the request, nor none', () => {
    const margins = { fewer: 1, more: 1 };
    expect(speakerCountOf(1, margins, UNBOUNDED).alternatives.map(({ count }) => count)).toEqual([2]);
    expect(speakerCountOf(3, margins, { min: 3, max: 5 }).alternatives.map(({ count }) => count)).toEqual([4]);
    expect(speakerCountOf(3, margins, { min: 1, max: 3 }).alternatives.map(({ count }) => count)).toEqual([2]);
  });
});

it('joins the counts of separate channels', () => {
  const one = { estimate: 1, confidence: 80, alternatives: [{ count: 2, confidence: 15 }] };
  expect(joinCounts([one, one])).toEqual({ estimate: 2, confidence: 64, alternatives: [] });
  expect(joinCounts([one, undefined])).toBeUndefined();
});
