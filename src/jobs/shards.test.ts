import { expect, it } from 'vitest';
import { CHUNK_SAMPLES } from '../ingest/chunks.ts';
import { OVERRUN_SAMPLES, readyShards, SHARD_SAMPLES, SHARD_SECONDS, shardCountOf } from './shards.ts';

const RATE = 16_000;

it('covers a recording without hole or overlap, on the grid of the stretches', () => {
  expect(SHARD_SAMPLES % (10 * RATE)).toBe(0);
  for (const seconds of [0.001, 9.99, 300, 300.01, 301, 3600, 86_400]) {
    const total = Math.ceil(seconds * RATE);
    const shards = shardCountOf(total);
    expect(shards).toBe(Math.ceil(total / (SHARD_SECONDS * RATE)));
    expect((shards - 1) * SHARD_SAMPLES).toBeLessThan(total);
    expect(shards * SHARD_SAMPLES).toBeGreaterThanOrEqual(total);
  }
});

it('has no shard for a recording without samples', () => {
  expect(shardCountOf(0)).toBe(0);
});

it('has a shard ready once all is stored that it reads, and never the last one before the end is known', () => {
  expect([0, OVERRUN_SAMPLES, SHARD_SAMPLES].map(readyShards)).toEqual([0, 0, 0]);
  expect(readyShards(SHARD_SAMPLES + OVERRUN_SAMPLES - 1)).toBe(0);
  expect(readyShards(SHARD_SAMPLES + OVERRUN_SAMPLES)).toBe(1);
  expect([1, 2, 3, 4, 5].map((chunks) => readyShards(chunks * CHUNK_SAMPLES))).toEqual([0, 0, 1, 1, 2]);
  for (let stored = 0; stored < 10 * SHARD_SAMPLES; stored += 7 * RATE) {
    expect(readyShards(stored)).toBeLessThan(Math.max(1, shardCountOf(stored)));
  }
});
