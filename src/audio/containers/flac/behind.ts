import type { BlockReader } from '../../block-reader.ts';

/** How far behind the last frame the start of another file is looked for. */
const MAX_SEARCH_BYTES = 16 << 20;
/** Magic, and the head of STREAMINFO without the flag that it is the last block. */
const STREAM_HEAD = Uint8Array.of(0x66, 0x4c, 0x61, 0x43, 0, 0, 0, 34);

/** What to say of it. @param seconds length of what was read */
export const goesOn = (seconds: number): string =>
  `The FLAC file goes on at another sample rate or with other channels after ${seconds.toFixed(1)} s; that part was left out.`;

/** Whether another file begins behind the last frame that was read; where its frames are read too, the last one is its own. */
export async function hasStreamBehind(reader: BlockReader, from: number, endByte: number): Promise<boolean> {
  const until = Math.min(endByte, from + MAX_SEARCH_BYTES);
  for (let position = from; position + STREAM_HEAD.length <= until; ) {
    const view = await reader.peek(position, STREAM_HEAD.length);
    for (let at = view.indexOf(0x66); at >= 0; at = view.indexOf(0x66, at + 1)) {
      if (STREAM_HEAD.every((byte, i) => (i === 4 ? view[at + i] & 0x7f : view[at + i]) === byte)) return true;
    }
    position += Math.max(1, view.length - STREAM_HEAD.length + 1);
  }
  return false;
}
