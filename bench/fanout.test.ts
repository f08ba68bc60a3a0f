import { describe, expect, it } from 'vitest';
import { fanOut } from './fanout.ts';

const OVERHEAD_MS = 2500;

describe('fanOut', () => {
  it('gives each shard to the consumer that is free first', () => {
    expect(fanOut([1000], 10, 1, 0) - OVERHEAD_MS).toBe(10_000);
    expect(fanOut([1000], 10, 4, 0) - OVERHEAD_MS).toBe(3000);
    expect(fanOut([3000, 1000], 4, 2, 0) - OVERHEAD_MS).toBe(4000);
  });

  it('is never faster than its slowest shard and its assembly', () => {
    expect(fanOut([1000, 7000], 4, 250, 500) - OVERHEAD_MS).toBe(7500);
  });
});
