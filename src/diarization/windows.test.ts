import { describe, expect, it } from 'vitest';
import { stretchAt, windowCount, windowsOfShard } from './windows.ts';

const grid = (totalSamples: number) => ({ windowSamples: 160000, stepSamples: 16000, totalSamples });

describe('window grid', () => {
  it.each([
    [0, 0],
    [1, 1],
    [160000, 1],
    [160001, 2],
    [176000, 2],
    [176001, 3],
  ])('%i samples: %i windows', (samples, windows) => {
    expect(windowCount(grid(samples))).toBe(windows);
  });

  it('covers every sample, and gives each window to one shard', () => {
    for (const total of [5, 159999, 480000, 3037000, 4800001]) {
      const all = windowCount(grid(total));
      expect((all - 1) * 16000 + 160000).toBeGreaterThanOrEqual(total);
      let next = 0;
      for (let start = 0; start < total; start += 480000) {
        const { first, count } = windowsOfShard(grid(total), start, Math.min(total, start + 480000));
        if (count > 0) expect(first).toBe(next);
        next += count;
      }
      expect(next).toBe(all);
    }
  });
});

describe('embedding stretches', () => {
  it('lie on a fixed grid', () => {
    expect(stretchAt(2, 160000, 1e6)).toEqual({ fromSample: 320000, toSample: 480000, ownFromSample: 320000 });
    expect(stretchAt(2, 160000, 410000)).toEqual({ fromSample: 320000, toSample: 410000, ownFromSample: 320000 });
  });

  it('are computed on the last ten seconds where they are short', () => {
    expect(stretchAt(2, 160000, 330000)).toEqual({ fromSample: 170000, toSample: 330000, ownFromSample: 320000 });
    expect(stretchAt(0, 160000, 5000)).toEqual({ fromSample: 0, toSample: 5000, ownFromSample: 0 });
  });
});
