import type { BlockReader } from './block-reader.ts';
import { skipTags } from './tags.ts';

/** How the frames of one stream are told and measured by their headers alone. */
export interface FrameSyntax {
  /** Bytes that `frameBytesAt` needs. */
  readonly headerBytes: number;
  /** Bytes, header included, that `frameBytesAt` looks at where the file has as many; absent where the header is enough. */
  readonly lookAheadBytes?: number;
  /** Longest frame, bytes. */
  readonly maxFrameBytes: number;
  /** The byte that every header begins with, where there is one: searches are quicker. */
  readonly syncByte?: number;
  /** Headers in a row that prove a place to go on at. */
  readonly chain: number;
  /** Length of the frame that begins at `at`, header included; 0 where no header of this stream stands. */
  frameBytesAt(bytes: Uint8Array, at: number): number;
}

export interface FrameRun {
  /** Offset and length of each frame, in order. */
  readonly offsets: number[];
  readonly lengths: number[];
  /** Bytes in front of these frames that belong to no frame, and to no tag. */
  readonly skippedBytes: number;
  /** The file ends inside a frame behind these. */
  readonly isTruncated: boolean;
}

/** Bytes looked at in one go while searching. */
const SEARCH_BYTES = 1 << 16;

/**
 * Walks the frames of `[startByte, endByte)` by their headers, one run per buffered stretch. Where no header stands where one should,
 * it goes on behind the tags that stand there, or at the next place with several headers in a chain. The walk depends only on the position and the syntax, so a walk from any
 * frame on finds the same frames as the walk from the start.
 */
export async function* walkFrames(
  reader: BlockReader,
  syntax: FrameSyntax,
  startByte: number,
  endByte: number,
): AsyncGenerator<FrameRun> {
  const { headerBytes } = syntax;
  const aheadBytes = Math.max(headerBytes, syntax.lookAheadBytes ?? 0);
  let position = startByte;
  let skippedBytes = 0;
  while (position + headerBytes <= endByte) {
    const view = clip(await reader.peek(position, aheadBytes), endByte - position);
    const neededBytes = position + view.length < endByte ? aheadBytes : headerBytes;
    const offsets: number[] = [];
    const lengths: number[] = [];
    let at = 0;
    let length = 0;
    let isLost = false;
    let isTruncated = false;
    while (at + neededBytes <= view.length) {
      length = syntax.frameBytesAt(view, at);
      isLost = length === 0;
      if (isLost) break;
      isTruncated = position + at + length > endByte;
      if (isTruncated) break;
      offsets.push(position + at);
      lengths.push(length);
      at += length;
    }
    position += at;
    if (offsets.length > 0 || isTruncated) yield { offsets, lengths, skippedBytes, isTruncated };
    if (isTruncated) return;
    skippedBytes = 0;
    if (!isLost) continue;
    const behindTags = await skipTags(reader, position, endByte);
    if (behindTags > position && (await isFrameOrEnd(reader, syntax, behindTags, endByte))) {
      position = behindTags;
      continue;
    }
    const found = await resync(reader, syntax, position, endByte);
    if (found === undefined) return;
    skippedBytes = found - position;
    position = found;
  }
}

/** Whether a tag that ends here was one: what looks like it inside damage ends anywhere. */
async function isFrameOrEnd(
  reader: BlockReader,
  syntax: FrameSyntax,
  position: number,
  endByte: number,
): Promise<boolean> {
  if (position + syntax.headerBytes > endByte) return true;
  const aheadBytes = Math.max(syntax.headerBytes, syntax.lookAheadBytes ?? 0);
  return syntax.frameBytesAt(clip(await reader.peek(position, aheadBytes), endByte - position), 0) > 0;
}

/** First position from `from` on where a chain of headers begins, or fewer that end exactly with the audio. */
async function resync(
  reader: BlockReader,
  syntax: FrameSyntax,
  from: number,
  endByte: number,
): Promise<number | undefined> {
  const chainBytes =
    (syntax.chain - 1) * syntax.maxFrameBytes + Math.max(syntax.headerBytes, syntax.lookAheadBytes ?? 0);
  for (let position = from; position + syntax.headerBytes <= endByte; ) {
    const view = clip(await reader.peek(position, SEARCH_BYTES), endByte - position);
    const isEnd = position + view.length >= endByte;
    const until = isEnd ? view.length - syntax.headerBytes + 1 : view.length - chainBytes;
    for (let at = nextCandidate(view, 0, syntax); at < until; at = nextCandidate(view, at + 1, syntax)) {
      if (isChain(view, at, syntax, isEnd)) return position + at;
    }
    if (isEnd) return undefined;
    position += until;
  }
  return undefined;
}

function nextCandidate(view: Uint8Array, from: number, { syncByte }: FrameSyntax): number {
  if (syncByte === undefined) return from;
  const at = view.indexOf(syncByte, from);
  return at < 0 ? view.length : at;
}

function isChain(view: Uint8Array, at: number, syntax: FrameSyntax, isEnd: boolean): boolean {
  let end = at;
  for (let count = 0; count < syntax.chain; count++) {
    if (isEnd && count > 0 && end === view.length) return true;
    if (end + syntax.headerBytes > view.length) return false;
    const length = syntax.frameBytesAt(view, end);
    if (length === 0) return false;
    end += length;
  }
  return true;
}

const clip = (view: Uint8Array, length: number): Uint8Array => (view.length > length ? view.subarray(0, length) : view);
