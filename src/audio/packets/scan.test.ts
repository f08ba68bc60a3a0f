import { expect, it } from 'vitest';
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
