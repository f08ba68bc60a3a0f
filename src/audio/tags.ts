import type { BlockReader } from './block-reader.ts';
import { hasAscii, u32le } from './bytes.ts';

/** Tags in a row that are skipped; real files have one or two. */
const MAX_TAGS = 16;

const ID3V1_BYTES = 128;

/** Length in bytes of the ID3v2 tag that starts at `at`, 0 when there is none. */
function id3v2Bytes(bytes: Uint8Array, at: number): number {
  if (!hasAscii(bytes, at, 'ID3') || bytes.length < at + 10) return 0;
  const size = bytes.subarray(at + 6, at + 10);
  if (bytes[at + 3] === 0xff || bytes[at + 4] === 0xff || size.some((byte) => byte >= 0x80)) return 0;
  const footer = bytes[at + 5] & 0x10 ? 10 : 0;
  return 10 + ((size[0] << 21) | (size[1] << 14) | (size[2] << 7) | size[3]) + footer;
}

/** Length of the tag that `head` begins with, of those that stand in front of sound; 0 when there is none. */
function headTagBytes(head: Uint8Array): number {
  const ape = hasAscii(head, 0, 'APETAGEX') && head.length >= 32 ? 32 + u32le(head, 12) : 0;
  return id3v2Bytes(head, 0) || ape;
}

/**
 * Offset of the first byte after the ID3v2 and APE tags at the start of the file. A tag longer than the file is no
 * tag.
 */
export async function skipHeadTags(reader: BlockReader): Promise<number> {
  let offset = 0;
  for (let count = 0; count < MAX_TAGS; count++) {
    const length = headTagBytes(await reader.peek(offset, 32));
    if (length === 0 || offset + length >= reader.sizeBytes) break;
    offset += length;
  }
  return offset;
}

/**
 * Offset of the first byte after the tags at `from`, of whatever kind: between files that were concatenated
 * stand those of both.
 */
export async function skipTags(reader: BlockReader, from: number, endByte: number): Promise<number> {
  let offset = from;
  for (let count = 0; count < MAX_TAGS && offset < endByte; count++) {
    const head = await reader.peek(offset, 32);
    const length = headTagBytes(head) || (hasAscii(head, 0, 'TAG') ? ID3V1_BYTES : 0);
    if (length === 0 || offset + length > endByte) break;
    offset += length;
  }
  return offset;
}
