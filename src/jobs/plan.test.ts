import { expect, it } from 'vitest';
import { cutShards, SHARD_SECONDS } from './plan.ts';

const RATE = 16000;

it('covers the recording without hole or overlap, on the grid of the stretches', () => {
  for (const seconds of [0.001, 9.99, 300, 300.01, 301, 3600, 86400]) {
    const total = Math.ceil(seconds * RATE);
    const shards = cutShards(total);
    expect(shards[0]!.startSample).toBe(0);
    expect(shards.at(-1)!.endSample).toBe(total);
    for (const [index, shard] of shards.entries()) {
      expect(shard.endSample).toBeGreaterThan(shard.startSample);
      expect(shard.startSample % (10 * RATE)).toBe(0);
      if (index > 0) expect(shard.startSample).toBe(shards[index - 1]!.endSample);
    }
    expect(shards).toHaveLength(Math.ceil(total / (SHARD_SECONDS * RATE)));
  }
});

it('has no shard for a recording without samples', () => {
  expect(cutShards(0)).toEqual([]);
});
