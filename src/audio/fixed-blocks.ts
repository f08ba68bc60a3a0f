import type { BlockReader } from './block-reader.ts';
import type { FramesFrom } from './frame-stream.ts';

/** Coded blocks of one size behind one another; the last may be shorter. */
export interface BlockLayout {
  readonly dataOffset: number;
  readonly dataBytes: number;
  readonly blockBytes: number;
}

/** The blocks from any number on: a block's place is plain arithmetic. */
export function fixedBlocks(reader: BlockReader, { dataOffset, dataBytes, blockBytes }: BlockLayout): FramesFrom {
  return async function* (fromFrame) {
    for (let at = fromFrame * blockBytes; at < dataBytes; at += blockBytes) {
      const length = Math.min(blockBytes, dataBytes - at);
      const view = await reader.peek(dataOffset + at, length);
      yield view.subarray(0, length);
    }
  };
}
