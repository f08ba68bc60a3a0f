import type { BlockReader } from '../../block-reader.ts';
import { isHeaderAt, MAX_FRAME_BYTES, parseHeader } from './header.ts';

export interface FrameRun {
  /** Offset and length of each frame, in order. */
  readonly offsets: number[];
  readonly lengths: number[];
  /** Bytes in front of these frames that belong to no frame. */
  readonly skippedBytes: number;
  /** The file ends inside a frame behind these. */
  readonly isTruncated: boolean;
}

/** Bytes looked at in one go while searching; also how far behind a candidate its chain is followed. */
const SEARCH_BYTES = 1 << 16;
const CHAIN_BYTES = 2 * MAX_FRAME_BYTES + 4;

/**
 * Walks the layer III frames of `[startByte, endByte)` by their headers, one run per buffered stretch. Where no header
 * stands where one should, it goes on at the next place with three headers in a chain. The walk depends only on the
 * position and the lock bits, so a walk from any frame on finds the same frames as the walk from the start.
 */
export async function* walkFrames(
  reader: BlockReader,
  lock: number,
  startByte: number,
  endByte: number,
): AsyncGenerator<FrameRun> {
  let position = startByte;
  let skippedBytes = 0;
  while (position + 4 <= endByte) {
    const view = clip(await reader.peek(position, 4), endByte - position);
    const offsets: number[] = [];
    const lengths: number[] = [];
    let at = 0;
    let isTruncated = false;
    while (at + 4 <= view.length && isHeaderAt(view, at, lock)) {
      const length = parseHeader(view, at)!.frameBytes;
      isTruncated = position + at + length > endByte;
      if (isTruncated) break;
      offsets.push(position + at);
      lengths.push(length);
      at += length;
    }
    const lost = at + 4 <= view.length;
    position += at;
    if (offsets.length > 0 || isTruncated) yield { offsets, lengths, skippedBytes, isTruncated };
    if (isTruncated) return;
    skippedBytes = 0;
    if (!lost) continue;
    const found = await resync(reader, lock, position, endByte);
    if (found === undefined) return;
    skippedBytes = found - position;
    position = found;
  }
}

/** First position from `from` on where a chain of three headers begins, or fewer that end exactly with the audio. */
async function resync(reader: BlockReader, lock: number, from: number, endByte: number): Promise<number | undefined> {
  for (let position = from; position + 4 <= endByte; ) {
    const view = clip(await reader.peek(position, SEARCH_BYTES), endByte - position);
    const isEnd = position + view.length >= endByte;
    const until = isEnd ? view.length - 3 : view.length - CHAIN_BYTES;
    for (let at = view.indexOf(0xff); at >= 0 && at < until; at = view.indexOf(0xff, at + 1)) {
      if (isHeaderAt(view, at, lock) && isChain(view, at, lock, isEnd)) return position + at;
    }
    if (isEnd) return undefined;
    position += until;
  }
  return undefined;
}

function isChain(view: Uint8Array, at: number, lock: number, isEnd: boolean): boolean {
  let end = at;
  for (let count = 0; count < 3; count++) {
    if (isEnd && end === view.length) return true;
    if (end + 4 > view.length || !isHeaderAt(view, end, lock)) return false;
    end += parseHeader(view, end)!.frameBytes;
  }
  return true;
}

const clip = (view: Uint8Array, length: number): Uint8Array => (view.length > length ? view.subarray(0, length) : view);
