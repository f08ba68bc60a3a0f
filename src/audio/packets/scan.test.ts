import { describe, expect, it } from 'vitest';
import { memorySource } from '../../../test/helpers/audio.ts';
import { BlockReader } from '../block-reader.ts';
import type { PacketWalk } from './packet.ts';
import { scanPackets } from './scan.ts';

it('says when there are more packets than it walks', async () => {
  async function* walk(runs: number): PacketWalk {
    for (let run = 0; run < runs; run++)
      yield { packets: Array.from({ length: 10 }, () => ({ offset: 0, length: 1 })) };
  }
  const scan = (runs: number) => {
    const counter = { headBytes: 0, canRestart: true, count: () => 480 };
    return scanPackets(new BlockReader(memorySource(new Uint8Array(1))), walk(runs), counter, 48_000, 30);
  };
  expect(await scan(3)).toMatchObject({ packets: 30, hasTooMany: false });
  expect(await scan(4)).toMatchObject({ packets: 30, hasTooMany: true });
});

describe('stamps', () => {
  /** Packets of 20 ms, ten to a run, stamped as late as `lateSeconds` says; each is also a place to begin at. */
  const scan = (packets: number, lateSeconds: (i: number) => number) => {
    async function* walk(): PacketWalk {
      for (let first = 0; first < packets; first += 10) {
        const run = Array.from({ length: 10 }, (_, k) => first + k);
        yield { packets: run.map((i) => ({ offset: i, length: 1, seconds: 0.02 * i + lateSeconds(i), entry: i })) };
      }
    }
    const counter = { headBytes: 0, canRestart: true, count: () => 960 };
    return scanPackets(new BlockReader(memorySource(new Uint8Array(1))), walk(), counter, 48_000);
  };

  it('that run late and catch up again do not move the clock', async () => {
    const found = await scan(15_000, (i) => (i % 250 >= 100 && i % 250 < 115 ? 0.3 : 0));
    expect(found).toMatchObject({ endPosition: 15_000 * 960, gaps: [], gapSamples: 0, brokenTimes: 0 });
  });

  it('that are late for longer are followed, there and back, however often', async () => {
    const found = await scan(15_000, (i) => (i % 250 >= 50 && i % 250 < 150 ? 0.3 : 0));
    expect(found).toMatchObject({ endPosition: 15_000 * 960, brokenTimes: 0 });
    expect(found.gaps.slice(0, 4)).toEqual([50 * 960, 14_400, 150 * 960 + 14_400, -14_400]);
  });

  it('of another clock, on a packet alone, are not followed', async () => {
    const found = await scan(1000, (i) => (i === 300 ? -10 : i === 600 ? 1000 : 0));
    expect(found).toMatchObject({ endPosition: 1000 * 960, gaps: [], brokenTimes: 0 });
  });

  it('that jump by more than lasts are followed as far as it lasts', async () => {
    const found = await scan(1000, (i) => (i < 300 ? 0 : i < 310 ? 5 : 2));
    expect(found.gaps).toEqual([300 * 960, 96_000]);
  });
});
