import type { BlockReader } from '../../block-reader.ts';
import { hasAscii } from '../../bytes.ts';
import { skipZeros } from '../../zeros.ts';
import { type Box, boxesOf, MAX_BOXES } from './boxes.ts';

/** A `moof` box describes some seconds; one of this size would be an hour. */
export const MAX_MOOF_BYTES = 4 << 20;

/** What a walk over fragments found to be not quite right. */
export type FragmentFaults = {
  /** The file ends inside a fragment. */
  isCut?: boolean;
  /** Something was passed over in front of later fragments, or in place of them. */
  isDamaged?: boolean;
  /** Another file was appended, whose fragments look the same as those of the first. */
  hasAnother?: boolean;
  /** Packets of another description were left out. */
  hasOthers?: boolean;
};

/** The head of one fragment. */
export interface Fragment {
  readonly box: Box;
  /** Whether another index stands in front of it: where it counts bytes, it is from the start of another file. */
  readonly isOfAnother: boolean;
}

/** How far after a damaged place the next fragment is looked for. */
const MAX_SEARCH_BYTES = 64 << 20;
/** Damaged places in one walk. */
const MAX_DAMAGES = 1000;
/** Bytes after the last box that may be a tag or padding. */
const MAX_TAIL_BYTES = 4096;
/** What boxes are called. Zeros in the place of one would be a box up to the end of the file, by their size. */
const IS_TYPE = /^[\x20-\x7e]{4}$/;
/** A fragment's head: its first box in it is its number, of 16 bytes. */
const SIGNATURE_BYTES = 16;

/** The whole `moof` boxes from `from` on. Where no box is, or one that cannot be, it continues at the next fragment. */
export async function* fragmentsOf(
  reader: BlockReader,
  from: number,
  faults: FragmentFaults,
): AsyncGenerator<Fragment> {
  const end = reader.sizeBytes;
  let position = from;
  let boxes = 0;
  let isOfAnother = false;
  for (let damages = 0; damages <= MAX_DAMAGES; damages++) {
    let cut: string | undefined;
    for await (const box of boxesOf(reader, position, end)) {
      const isFragment = box.type === 'moof';
      boxes++;
      if (box.isCut) cut = box.type;
      if (box.isCut || !IS_TYPE.test(box.type) || (isFragment && box.end - box.start > MAX_MOOF_BYTES)) break;
      if (isFragment) yield { box, isOfAnother };
      isOfAnother ||= box.type === 'moov';
      position = box.end;
    }
    if (boxes >= MAX_BOXES) return;
    const rest = end - position;
    const next = rest < SIGNATURE_BYTES ? undefined : await findFragment(reader, position + 1);
    if (next === undefined) {
      const searched = Math.min(end, position + MAX_SEARCH_BYTES);
      if (cut === 'moof' || cut === 'mdat') faults.isCut = true;
      else if (rest > MAX_TAIL_BYTES) faults.isDamaged ||= (await skipZeros(reader, position, searched)) < searched;
      return;
    }
    faults.isDamaged = true;
    position = next;
  }
}

/** The next place that looks like the start of a fragment. */
async function findFragment(reader: BlockReader, from: number): Promise<number | undefined> {
  const until = Math.min(reader.sizeBytes, from + MAX_SEARCH_BYTES);
  for (let position = from; position + SIGNATURE_BYTES <= until; ) {
    const view = await reader.peek(position, SIGNATURE_BYTES);
    for (let at = view.indexOf(0x6d, 4); at >= 0 && at + 12 <= view.length; at = view.indexOf(0x6d, at + 1)) {
      if (hasAscii(view, at, 'moof\0\0\0\x10mfhd')) return position + at - 4;
    }
    position += Math.max(1, view.length - SIGNATURE_BYTES + 1);
  }
  return undefined;
}
