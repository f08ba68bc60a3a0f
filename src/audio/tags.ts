import type { BlockReader } from './block-reader.ts';
import { ascii, hasAscii, u32le } from './bytes.ts';

/** Tags in a row that are skipped; real files have one or two. */
const MAX_TAGS = 16;

/** Length in bytes of the ID3v2 tag that starts at `at`, 0 when there is none. */
function id3v2Bytes(bytes: Uint8Array, at: number): number {
  if (!hasAscii(bytes, at, 'ID3') || bytes.length < at + 10) return 0;
  const size = bytes.subarray(at + 6, at + 10);
  if (bytes[at + 3] === 0xff || bytes[at + 4] === 0xff || size.some((byte) => byte >= 0x80)) return 0;
  const footer = bytes[at + 5] & 0x10 ? 10 : 0;
  return 10 + ((size[0] << 21) | (size[1] << 14) | (size[2] << 7) | size[3]) + footer;
}

/** Offset of the first byte behind the ID3v2 and APE tags at the start of the file. A tag longer than the file is no tag. */
export async function skipHeadTags(reader: BlockReader): Promise<number> {
  let offset = 0;
  for (let count = 0; count < MAX_TAGS; count++) {
    const head = await reader.peek(offset, 32);
    const ape = hasAscii(head, 0, 'APETAGEX') && head.length >= 32 ? 32 + u32le(head, 12) : 0;
    const length = id3v2Bytes(head, 0) || ape;
    if (length === 0 || offset + length >= reader.sizeBytes) break;
    offset += length;
  }
  return offset;
}

/** Offset of the first byte of the ID3v1, APE and Lyrics3 tags at the end of the file; its size when there are none. */
export async function tailTagsStart(reader: BlockReader, startByte: number): Promise<number> {
  let end = reader.sizeBytes;
  for (let count = 0; count < MAX_TAGS; count++) {
    const from = Math.max(startByte, end - 128);
    const tail = (await reader.peek(from, end - from)).subarray(0, end - from);
    const length = tailTagBytes(tail);
    if (length === 0 || end - length < startByte) break;
    end -= length;
  }
  return end;
}

/** @param tail the last 128 bytes, or fewer */
function tailTagBytes(tail: Uint8Array): number {
  if (tail.length === 128 && hasAscii(tail, 0, 'TAG')) return 128;
  const footer = tail.length - 32;
  if (hasAscii(tail, footer, 'APETAGEX')) {
    const header = tail[footer + 23] & 0x80 ? 32 : 0;
    return u32le(tail, footer + 12) + header;
  }
  if (hasAscii(tail, tail.length - 9, 'LYRICS200')) {
    const digits = ascii(tail, tail.length - 15, tail.length - 9);
    if (/^\d{6}$/.test(digits)) return Number(digits) + 15;
  }
  return 0;
}
