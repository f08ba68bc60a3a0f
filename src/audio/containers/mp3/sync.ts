import type { BlockReader } from '../../block-reader.ts';
import { hasAscii } from '../../bytes.ts';
import { adtsFrameBytesAt, adtsLockAt } from '../adts/header.ts';
import { type MpegHeader, parseHeader } from './header.ts';

/** What the first bytes turn out to be. */
export type MpegFamily = 'mp3' | 'free-format' | 'layer1' | 'layer2' | 'adts';

export interface MpegSync {
  readonly family: MpegFamily;
  /** Offset of the first frame. */
  readonly at: number;
  readonly header?: MpegHeader;
}

/** Bytes at the start in which the first frame is looked for. */
export const SYNC_BYTES = 1 << 16;

/** Headers in a row that prove a stream. */
const CHAIN = 4;

/**
 * Finds the first frame of an MPEG audio or ADTS stream by a chain of headers that agree.
 * @param head the first bytes of the audio
 * @param isWhole whether `head` is all of it, so that a chain may also end where it ends
 */
export function findMpegSync(head: Uint8Array, isWhole: boolean): MpegSync | undefined {
  for (let at = head.indexOf(0xff); at >= 0 && at + 4 <= head.length; at = head.indexOf(0xff, at + 1)) {
    if ((head[at + 1] & 0xe0) !== 0xe0) continue;
    const header = parseHeader(head, at);
    if (header && header.frameBytes > 0 && isChain(head, at, isWhole, (p) => mpegLength(head, p, header.lock))) {
      return { family: header.layer === 3 ? 'mp3' : header.layer === 2 ? 'layer2' : 'layer1', at, header };
    }
    if (header && header.frameBytes === 0 && isFreeFormat(head, at, header))
      return { family: 'free-format', at, header };
    const lock = adtsLockAt(head, at);
    if (isChain(head, at, isWhole, (p) => adtsFrameBytesAt(head, p, lock))) return { family: 'adts', at };
  }
  return undefined;
}

/** What to say where sound goes on behind the last frame of a stream: all of its frames have one rate, others are not read. */
export async function goesOnWarning(
  name: string,
  reader: BlockReader,
  rest: { readonly startByte: number; readonly endByte: number },
  seconds: number,
): Promise<string | undefined> {
  const wanted = Math.min(SYNC_BYTES, rest.endByte - rest.startByte);
  const view = await reader.peek(rest.startByte, wanted);
  if (!findMpegSync(view.subarray(0, wanted), false)) return undefined;
  return `The ${name} file goes on at another sample rate or in another coding after ${seconds.toFixed(1)} s; that part was left out.`;
}

function isChain(head: Uint8Array, at: number, isWhole: boolean, lengthAt: (at: number) => number): boolean {
  let end = at;
  let count = 0;
  while (count < CHAIN && end + 4 <= head.length) {
    const length = lengthAt(end);
    if (length === 0) break;
    end += length;
    count++;
  }
  if (count >= CHAIN) return true;
  if (!isWhole || at > 0 || count === 0) return false;
  // A very short file: its few frames must fill it, up to a tag; only a last frame of several may be cut off.
  return (
    end === head.length ||
    hasAscii(head, end, 'TAG') ||
    hasAscii(head, end, 'APETAGEX') ||
    (count > 1 && end > head.length)
  );
}

function mpegLength(head: Uint8Array, at: number, lock: number): number {
  const header = parseHeader(head, at);
  return header && header.lock === lock ? header.frameBytes : 0;
}

/** Free format: equal headers come at equal distances (one byte more or less for padding). */
function isFreeFormat(head: Uint8Array, at: number, header: MpegHeader): boolean {
  const nextFrom = (from: number): number => {
    for (let p = head.indexOf(0xff, from); p >= 0 && p + 4 <= head.length; p = head.indexOf(0xff, p + 1)) {
      const other = parseHeader(head, p);
      if (other && other.lock === header.lock && other.frameBytes === 0) return p;
    }
    return -1;
  };
  let before = at;
  let distance = 0;
  for (let count = 1; count < CHAIN; count++) {
    const next = nextFrom(before + Math.max(24, distance - 2));
    if (next < 0 || (distance > 0 && Math.abs(next - before - distance) > 2)) return false;
    distance = next - before;
    before = next;
  }
  return true;
}
