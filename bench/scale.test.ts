import { describe, expect, it } from 'vitest';
import { type Costs, simulatePeak, usesOf } from './scale.ts';

const costs: Costs = { ingestMs: 6000, analysisMs: 90_000, assembleMs: 3000, streamsAThread: 10 };

describe('simulatePeak', () => {
  it('ends no job before its work is done', () => {
    const { finish } = simulatePeak(1000, 1, costs);
    const [short, hour, long] = [...finish.values()];
    // Reading half a second, one shard of 7.5 s, the assembly, and three messages.
    expect(short[0]).toBeGreaterThanOrEqual(0.5 + 7.5 + 0.25 + 1.5);
    expect(short[0]).toBeLessThan(15);
    // Twelve shards of 7.5 s, eight at a time: two rounds.
    expect(hour[0]).toBeGreaterThanOrEqual(15);
    // 96 shards: twelve rounds.
    expect(long[0]).toBeGreaterThanOrEqual(90);
  });

  it('waits with too few consumers, and less with more queues', () => {
    const one = simulatePeak(100_000, 1, costs);
    const eight = simulatePeak(100_000, 8, costs);
    expect(one.busy.jobs).toBe(250);
    expect(eight.busy.jobs).toBeLessThan(2000);
    expect(one.finish.get(8)![1]).toBeGreaterThan(2 * eight.finish.get(8)![1]);
    // Short jobs have queues of their own.
    expect(one.finish.get(1 / 12)![1]).toBeLessThan(one.finish.get(1)![1] / 4);
  });
});

it('lists the scarcest resource first', () => {
  const shares = usesOf(100_000, 1, simulatePeak(100_000, 1, costs)).map(({ share }) => share);
  expect(shares).toEqual([...shares].sort((a, b) => b - a));
});
