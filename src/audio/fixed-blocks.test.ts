import { describe, expect, it } from 'vitest';
import { memorySource } from '../../test/helpers/audio.ts';
import { BlockReader } from './block-reader.ts';
import { fixedBlocks } from './fixed-blocks.ts';

const bytes = Uint8Array.from({ length: 5003 }, (_, i) => (i * 7 + (i >> 8)) & 255);

async function blocksOf(dataOffset: number, dataBytes: number, blockBytes: number, fromFrame: number) {
  const reader = new BlockReader(memorySource(bytes), 256);
  const found: Uint8Array[] = [];
  for await (const blocks of fixedBlocks(reader, { dataOffset, dataBytes, blockBytes })(fromFrame)) {
    expect(blocks.length).toBeGreaterThan(0);
    found.push(...blocks.map((block) => block.slice()));
  }
  return found;
}

describe('fixedBlocks', () => {
  it.each([1, 7, 33, 256, 700])('gives blocks of %i bytes in order, the last as short as it is', async (blockBytes) => {
    for (const fromFrame of [0, 1, 5]) {
      const found = await blocksOf(13, 4900, blockBytes, fromFrame);
      const expected: Uint8Array[] = [];
      for (let at = fromFrame * blockBytes; at < 4900; at += blockBytes) {
        expected.push(bytes.slice(13 + at, 13 + Math.min(4900, at + blockBytes)));
      }
      expect(found).toEqual(expected);
    }
  });

  it('gives short and empty blocks where the file has lost its end', async () => {
    const found = await blocksOf(4903, 300, 80, 0);
    expect(found.map(({ length }) => length)).toEqual([80, 20, 0, 0]);
  });
});
