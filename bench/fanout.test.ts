import { describe, expect, it } from 'vitest';
import { fanOut, readyTimes } from './fanout.ts';

/** Two messages, those of a shard and of the assembly, and the start of an isolate. */
const OVERHEAD_MS = 2000;
const atOnce = (shards: number) => new Array<number>(shards).fill(0);

describe('fanOut', () => {
  it('gives each shard to the consumer that is free first', () => {
    expect(fanOut([1000], atOnce(10), 1, 0) - OVERHEAD_MS).toBe(10_000);
    expect(fanOut([3000], atOnce(10), 4, 0) - OVERHEAD_MS).toBe(9000);
    expect(fanOut([3000, 2000], atOnce(4), 2, 0) - OVERHEAD_MS).toBe(5000);
  });

  it('is never faster than its slowest shard and its assembly', () => {
    expect(fanOut([1000, 7000], atOnce(4), 250, 500) - OVERHEAD_MS).toBe(7500);
  });

  it('begins no shard before its message is sent', () => {
    expect(fanOut([1000], [0, 5000], 250, 0) - OVERHEAD_MS).toBe(6000 - 1000);
    expect(fanOut([9000], [0, 5000], 250, 0) - OVERHEAD_MS).toBe(5000 + 9000);
  });
});

describe('readyTimes', () => {
  it('sends a shard with the chunk after it, the last one with the end', () => {
    const [first, second, third] = readyTimes(3, 12_000);
    // 12 s for an hour: a chunk of 150 s takes half a second. Queue and start of the isolate come first.
    expect(first).toBeCloseTo(1500 + 3 * 500);
    expect(second).toBeCloseTo(1500 + 5 * 500);
    expect(third).toBeCloseTo(1500 + 6 * 500);
  });

  it('adds the queue delay after every slice', () => {
    const shards = 12;
    expect(readyTimes(shards, 20_000).at(-1)).toBeCloseTo(1500 + 20_000 + 2 * 500);
  });
});
