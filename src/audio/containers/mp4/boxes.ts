import type { BlockReader } from '../../block-reader.ts';
import { ascii, u32be } from '../../bytes.ts';

/** One box of an ISO base media file (ISO/IEC 14496-12 §4.2): `[bodyStart, end)` without its header. */
export interface Box {
  readonly type: string;
  readonly start: number;
  readonly bodyStart: number;
  readonly end: number;
  /** The file ends before the box does. */
  readonly isCut: boolean;
}

const MAX_HEADER_BYTES = 16;

/** Boxes walked on one level; a day in fragments of half a second has 350 thousand. */
export const MAX_BOXES = 1_000_000;

/** The header at `at` of `view`, which lies at `position` in the file; undefined for a length that cannot be. */
function parseBox(view: Uint8Array, at: number, position: number, limit: number): Box | undefined {
  if (at + 8 > view.length) return undefined;
  const short = u32be(view, at);
  const isLong = short === 1;
  if (isLong && at + MAX_HEADER_BYTES > view.length) return undefined;
  const header = isLong ? MAX_HEADER_BYTES : 8;
  const size = isLong ? u32be(view, at + 8) * 2 ** 32 + u32be(view, at + 12) : short === 0 ? limit - position : short;
  if (size < header) return undefined;
  const end = position + size;
  return {
    type: ascii(view, at + 4, at + 8),
    start: position,
    bodyStart: position + header,
    end: Math.min(end, limit),
    isCut: end > limit,
  };
}

/** Boxes in `[from, to)` of the file, up to the first that cannot be one. */
export async function* boxesOf(reader: BlockReader, from: number, to: number): AsyncGenerator<Box> {
  let position = from;
  for (let count = 0; count < MAX_BOXES && position + 8 <= to; count++) {
    const box = parseBox(await reader.peek(position, MAX_HEADER_BYTES), 0, position, to);
    if (!box) return;
    yield box;
    position = box.end;
  }
}

/** The same in bytes that are at hand; positions count from their start. */
export function* boxesIn(bytes: Uint8Array, from = 0, to = bytes.length): Generator<Box> {
  for (let position = from; position + 8 <= to; ) {
    const box = parseBox(bytes, position, position, to);
    if (!box) return;
    yield box;
    position = box.end;
  }
}

/** First box of a type in bytes that are at hand. */
export function findBox(bytes: Uint8Array, type: string, from = 0, to = bytes.length): Uint8Array | undefined {
  for (const box of boxesIn(bytes, from, to)) if (box.type === type) return bytes.subarray(box.bodyStart, box.end);
  return undefined;
}

/** A copy of a box's body, at most `maxBytes` of it. */
export async function readBody(reader: BlockReader, box: Box, maxBytes: number): Promise<Uint8Array> {
  const length = Math.max(0, Math.min(box.end - box.bodyStart, maxBytes));
  return (await reader.peek(box.bodyStart, length)).slice(0, length);
}

/** Boxes by type, the first of each, of what lies inside `box`. */
export async function childrenOf(reader: BlockReader, box: Box, bodyOffset = 0): Promise<ReadonlyMap<string, Box>> {
  const children = new Map<string, Box>();
  for await (const child of boxesOf(reader, box.bodyStart + bodyOffset, box.end)) {
    if (!children.has(child.type)) children.set(child.type, child);
    if (children.size > 64) break;
  }
  return children;
}
