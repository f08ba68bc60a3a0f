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

/** The same in free format, where the headers do not say how far it is to the next. */
const FREE_CHAIN = 8;
/** The shortest frame of it: 32 kbit/s at 48 kHz. What comes closer together are samples or pictures. */
const MIN_FREE_BYTES = 96;
/** The longest: 640 kbit/s at 32 kHz, and one byte of padding. */
const MAX_FREE_BYTES = 2881;
/** Places where it is looked for: a stream of it shows at the first of them. */
const MAX_FREE_TRIES = 64;

/**
 * Finds the first frame of an MPEG audio or ADTS stream by a chain of headers that agree. What is not decoded counts
 * only where nothing else is found: samples and pictures with many bytes of 0xff look like it, also those in front of
 * sound.
 * @param head the first bytes of the audio
 * @param isWhole whether `head` is all of it, so that a chain may also end where it ends
 */
export function findMpegSync(head: Uint8Array, isWhole: boolean): MpegSync | undefined {
  let undecoded: MpegSync | undefined;
  let freeTries = 0;
  for (let at = head.indexOf(0xff); at >= 0 && at + 4 <= head.length; at = head.indexOf(0xff, at + 1)) {
    if ((head[at + 1] & 0xe0) !== 0xe0) continue;
    const header = parseHeader(head, at);
    if (header && header.frameBytes > 0 && isChain(head, at, isWhole, (p) => mpegLength(head, p, header.lock))) {
      if (header.layer !== 1) return { family: header.layer === 3 ? 'mp3' : 'layer2', at, header };
      undecoded ??= { family: 'layer1', at, header };
    }
    const isFree = !undecoded && header?.frameBytes === 0 && freeTries++ < MAX_FREE_TRIES && isFreeFormat(head, at);
    if (isFree) undecoded = { family: 'free-format', at, header };
    const lock = adtsLockAt(head, at);
    if (isChain(head, at, isWhole, (p) => adtsFrameBytesAt(head, p, lock))) return { family: 'adts', at };
  }
  return undecoded;
}

/**
 * What to say where sound continues after the last frame of a stream: all of its frames have one rate, others are not
 * read.
 */
export async function goesOnWarning(
  name: string,
  reader: BlockReader,
  rest: { readonly startByte: number; readonly endByte: number },
  seconds: number,
): Promise<string[]> {
  const wanted = Math.min(SYNC_BYTES, rest.endByte - rest.startByte);
  const view = await reader.peek(rest.startByte, wanted);
  if (!findMpegSync(view.subarray(0, wanted), false)) return [];
  return [
    `The ${name} file goes on at another sample rate or in another coding after ${seconds.toFixed(1)} s; that part was left out.`,
  ];
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
function isFreeFormat(head: Uint8Array, at: number): boolean {
  const isSame = (p: number): boolean =>
    head[p + 1] === head[at + 1] &&
    ((head[p + 2] ^ head[at + 2]) & ~PADDING_BIT) === 0 &&
    ((head[p + 3] ^ head[at + 3]) & ~MODE_EXTENSION_BITS) === 0;
  const nextBehind = (before: number): number => {
    const until = Math.min(head.length - 4, before + MAX_FREE_BYTES);
    for (let p = before + 4; p <= until; p++) if (head[p] === 0xff && isSame(p)) return p;
    return -1;
  };
  let before = at;
  let distance = 0;
  for (let count = 1; count < FREE_CHAIN; count++) {
    const next = nextBehind(before);
    if (next < 0 || (distance > 0 && Math.abs(next - before - distance) > 2)) return false;
    distance = next - before;
    if (distance < MIN_FREE_BYTES) return false;
    before = next;
  }
  return true;
}

/** What may differ between the frames of one stream, in the third and fourth byte of a header. */
const PADDING_BIT = 0x02;
const MODE_EXTENSION_BITS = 0x30;
