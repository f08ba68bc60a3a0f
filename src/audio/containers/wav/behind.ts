import type { BlockReader } from '../../block-reader.ts';
import { ascii, hasAscii, u32le } from '../../bytes.ts';
import { anotherBehind } from '../../joined.ts';
import { skipZeros } from '../../zeros.ts';

/** Chunks walked after the samples. */
const MAX_CHUNKS = 100;
/** A header and the shortest format. */
const MIN_FILE_BYTES = 44;
/** Bytes after the last chunk that may be ignored without a warning: padding, tags of players. */
const MAX_TAIL_BYTES = 4096;
/**
 * Zeros after the samples, in front of more sound that was silent for a while; where more follow they are all there
 * is, or a hole.
 */
const MAX_ZERO_BYTES = 16 << 20;

const IS_NAME = /^[\x20-\x7e]{4}$/;
const TAGS = ['ID3', 'TAG', 'APETAGEX'];

export const isWave = (head: Uint8Array): boolean =>
  (hasAscii(head, 0, 'RIFF') || hasAscii(head, 0, 'RF64') || hasAscii(head, 0, 'BW64')) && hasAscii(head, 8, 'WAVE');

/**
 * What stands after the samples, where it seems to be sound that is not read: another file, or bytes that are no
 * chunk, no tag and no zeros.
 *
 * @param from first byte after the samples
 * @returns a sentence about it, where there is something of that kind
 */
export async function behindWarning(reader: BlockReader, from: number): Promise<string[]> {
  const end = reader.sizeBytes;
  let offset = from;
  let isPadded = false;
  for (let count = 0; count < MAX_CHUNKS && end - offset >= MIN_FILE_BYTES; count++) {
    const head = await reader.peek(offset, 12);
    if (isWave(head)) return [anotherBehind('The WAV file')];
    const size = u32le(head, 4);
    if (IS_NAME.test(ascii(head, 0, 4)) && offset + 8 + size <= end) {
      offset += 8 + size;
      isPadded = false;
      continue;
    }
    // A chunk of an odd length has a byte more, which some writers leave out.
    if (isPadded || head[0] !== 0) break;
    offset++;
    isPadded = true;
  }
  const rest = end - offset;
  if (rest <= MAX_TAIL_BYTES) return [];
  const sound = await skipZeros(reader, offset, Math.min(end, offset + MAX_ZERO_BYTES));
  if (end - sound <= MAX_TAIL_BYTES || sound === offset + MAX_ZERO_BYTES) return [];
  const head = await reader.peek(sound, 16);
  if (TAGS.some((tag) => hasAscii(head, 0, tag))) return [];
  return [
    `${rest} bytes behind the samples of the WAV file belong to nothing that its header names and were left out.`,
  ];
}
