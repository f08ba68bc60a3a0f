import { describe, expect, it } from 'vitest';
import { largeClusters } from './centroids.ts';
import type { Merge } from './linkage.ts';
import { clustersWanted } from './wanted.ts';

const LIMITS = { minClusterSeconds: 1, minClusterShare: 0.06, coarseDistance: 0.5 };

/** 0 and 1 are alike, so are 2 and 3; 4 is like nobody and says little. */
const TREE: Merge[] = [
  { left: 0, right: 1, height: 0.1, size: 2 },
  { left: 2, right: 3, height: 0.2, size: 2 },
  { left: 5, right: 6, height: 0.9, size: 4 },
  { left: 4, right: 7, height: 1, size: 5 },
];
const SECONDS = Float64Array.of(10, 10, 10, 10, 0.6);

const noPause = async () => undefined;
const first = async (wanted: number) => {
  const ways = clustersWanted(TREE, SECONDS, LIMITS, wanted, noPause);
  return Array.from((await ways.next()).value ?? []);
};

describe('clustersWanted', () => {
  it('drops the small cluster while there are enough large ones', async () => {
    expect(await first(2)).toEqual([0, 0, 1, 1, -1]);
  });

  it('takes a small cluster before it splits a large one', async () => {
    expect(await first(3)).toEqual([0, 0, 1, 1, 2]);
  });

  it('splits where nothing else is left', async () => {
    expect(new Set(await first(5)).size).toBe(5);
  });

  it('gives what there is where there are fewer items than wanted', async () => {
    expect(await first(9)).toEqual([0, 1, 2, 3, 4]);
  });
});

describe('largeClusters', () => {
  it('orders by speech and always keeps the largest', () => {
    expect(largeClusters(Int32Array.of(0, 1, 1, 2), Float64Array.of(3, 2, 2, 0.1), LIMITS)).toEqual([1, 0]);
    expect(largeClusters(Int32Array.of(0, 1), Float64Array.of(0.2, 0.3), LIMITS)).toEqual([1]);
  });
});
