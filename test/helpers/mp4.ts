/** Boxes of MP4 files, and files with other edit lists. */
import { concat } from './audio.ts';
import { find } from './bytes.ts';

/** Big-endian words. */
export function u32(...values: number[]): Uint8Array {
  const bytes = new Uint8Array(4 * values.length);
  for (const [i, value] of values.entries()) new DataView(bytes.buffer).setUint32(4 * i, value);
  return bytes;
}

export function box(type: string, ...parts: Uint8Array[]): Uint8Array {
  const body = concat(...parts);
  return concat(u32(8 + body.length), new TextEncoder().encode(type), body);
}

/** Duration in ms, time in the media (`EMPTY`: nothing is played), and the rate where it is not 1. */
export type EditEntry = readonly [ms: number, mediaTime: number, rate?: number];
export const EMPTY = 0xffffffff;
const NORMAL_RATE = 0x10000;

/** Body of `elst`. */
export const editList = (...entries: readonly EditEntry[]): Uint8Array =>
  concat(u32(0, entries.length), ...entries.map(([ms, time, rate = NORMAL_RATE]) => u32(ms, time, rate)));

/** The file, of one track, with another edit list. It is in fragments, or its index lies behind the data: so no offset moves. */
export function withEdits(file: Uint8Array, ...entries: readonly EditEntry[]): Uint8Array {
  const hasList = Buffer.from(file).includes('edts');
  const at = find(file, hasList ? 'edts' : 'mdia') - 4;
  const oldBytes = hasList ? new DataView(file.buffer, file.byteOffset).getUint32(at) : 0;
  const edts = box('edts', box('elst', editList(...entries)));
  const out = concat(file.subarray(0, at), edts, file.subarray(at + oldBytes));
  for (const type of ['moov', 'trak']) {
    const view = new DataView(out.buffer, out.byteOffset);
    const place = find(out, type) - 4;
    view.setUint32(place, view.getUint32(place) + edts.length - oldBytes);
  }
  return out;
}
