import type { BlockReader } from './block-reader.ts';
import { FRAMES_TOGETHER, type FramesFrom } from './frame-stream.ts';

/** Coded blocks of one size behind one another; the last may be shorter. */
export interface BlockLayout {
  readonly dataOffset: number;
  readonly dataBytes: number;
  readonly blockBytes: number;
}

/** The blocks from any number on: a block's place is plain arithmetic. */
export function fixedBlocks(reader: BlockReader, { dataOffset, dataBytes, blockBytes }: BlockLayout): FramesFrom {
  return async function* (fromFrame) {
    let at = fromFrame * blockBytes;
    while (at < dataBytes) {
      const view = await reader.peek(dataOffset + at, Math.min(blockBytes, dataBytes - at));
      const end = Math.min(dataBytes - at, Math.max(blockBytes, view.length - (view.length % blockBytes)));
      const blocks: Uint8Array[] = [];
      for (let from = 0; from < end && blocks.length < FRAMES_TOGETHER; from += blockBytes) {
        blocks.push(view.subarray(from, Math.min(end, from + blockBytes)));
      }
      yield blocks;
      at += blocks.length * blockBytes;
    }
  };
}
