import type { BlockReader } from '../../block-reader.ts';
import type { Faults } from '../../container.ts';
import type { PacketWalk } from '../../packets/packet.ts';
import { crc16 } from './crc.ts';
import { type FlacFrameHeader, MAX_HEADER_BYTES, parseFrameHeader } from './frame-header.ts';
import { maxFrameBytes, type StreamInfo } from './stream-info.ts';

interface Candidate {
  readonly offset: number;
  readonly header: FlacFrameHeader;
}

/**
 * Longer gaps are taken for concatenated files, unless the length in the header or damaged bytes speak for
 * damage.
 */
const MAX_GAP_SECONDS = 10;

/** The shortest frame: a header with its checksum, a constant, and the checksum after it. */
const MIN_FRAME_BYTES = 10;

/**
 * Headers that turn out to be none, in one walk. Chance makes one in 16 MB; a file made of false headers would
 * otherwise keep the walk busy for hours.
 */
const MAX_FALSE_HEADERS = 100_000;

const expectedNumber = ({ header }: Candidate): number => header.number + (header.isVariable ? header.blockSamples : 1);

/**
 * The frames as packets. FLAC frames do not say how long they are: a frame ends where the next
 * header stands, and a header is believed when its number is the next one, or else when the checksum of the frame in
 * front of it comes out right. Numbers that start again (concatenated files) are accepted; numbers left out
 * are a gap. A walk from any frame on finds the same frames as the walk from the start.
 *
 * @param firstByte after the metadata
 * @param entry a frame that a walk before has found
 */
export async function* flacPackets(
  reader: BlockReader,
  info: StreamInfo,
  firstByte: number,
  faults: Faults,
  entry?: number,
): PacketWalk {
  const endByte = reader.sizeBytes;
  const limits = { reader, info, endByte, falseHeadersLeft: MAX_FALSE_HEADERS };
  const known = entry === undefined ? undefined : await nextHeader(limits, entry, entry + 1);
  let current = known ?? (await firstChained(limits, entry ?? firstByte));
  let sample = Number(faults.samples ?? 0);
  let gapSamples = current && entry === undefined ? gapInFront(info, current, current.offset - firstByte) : 0;
  while (current) {
    const { offset, header } = current;
    let next = await nextFrame(limits, current);
    const bound = Math.min(endByte, offset + maxFrameBytes(info, header.blockSamples));
    let end: number;
    let damagedBytes = 0;
    faults.lastFrame = offset;
    faults.samples = sample + gapSamples;
    if (next) {
      end = next.offset;
    } else {
      const after: number = offset + header.headerBytes;
      next = await firstChained(limits, after);
      end = Math.min(next?.offset ?? endByte, bound);
      damagedBytes = (next?.offset ?? after) - after;
      if (!next && bound === endByte) {
        const isTotal = sample + gapSamples + header.blockSamples === info.totalSamples;
        faults.isCut = !(await isWholeFrame(reader, offset, endByte, isTotal));
        if (faults.isCut) return;
      }
    }
    if (gapSamples > 0) faults.gapSamples = Number(faults.gapSamples ?? 0) + gapSamples;
    yield { packets: [{ offset, length: end - offset, samples: header.blockSamples, gapSamples, entry: offset }] };
    sample += gapSamples + header.blockSamples;
    gapSamples = next ? gapBetween(info, current, next, damagedBytes) : 0;
    current = next;
  }
}

interface Limits {
  readonly reader: BlockReader;
  readonly info: StreamInfo;
  readonly endByte: number;
  falseHeadersLeft: number;
}

/** The frame after `current`, proven by its number or by the checksum of `current`. */
async function nextFrame(limits: Limits, current: Candidate): Promise<Candidate | undefined> {
  const { offset, header } = current;
  const until = Math.min(limits.endByte, offset + maxFrameBytes(limits.info, header.blockSamples) + 1);
  const expected = expectedNumber(current);
  let from = offset + header.headerBytes;
  // Checksum of `[offset, checkedTo)`, carried on from doubt to doubt.
  let checkedTo = offset;
  let crc = 0;
  while (limits.falseHeadersLeft > 0) {
    const found = await nextHeader(limits, from, until);
    if (!found) return undefined;
    if (found.header.number === expected && found.header.isVariable === header.isVariable) return found;
    crc = await crc16Of(limits.reader, checkedTo, found.offset, crc);
    checkedTo = found.offset;
    if (crc === 0) return found;
    from = found.offset + 1;
    limits.falseHeadersLeft--;
  }
  return undefined;
}

/** The first header from `from` on that another frame, or a right checksum up to the end, proves. */
async function firstChained(limits: Limits, from: number): Promise<Candidate | undefined> {
  while (limits.falseHeadersLeft > 0) {
    const found = await nextHeader(limits, from, limits.endByte);
    if (!found) return undefined;
    if (await nextFrame(limits, found)) return found;
    const longest = maxFrameBytes(limits.info, found.header.blockSamples);
    const rest = limits.endByte - found.offset;
    if (rest <= longest && (await crc16Of(limits.reader, found.offset, limits.endByte)) === 0) return found;
    from = found.offset + 1;
    limits.falseHeadersLeft--;
  }
  return undefined;
}

/** The first place in `[from, until)` where a header of this stream seems to stand. */
async function nextHeader(limits: Limits, from: number, until: number): Promise<Candidate | undefined> {
  const { reader, info, endByte } = limits;
  for (let position = from; position < until; ) {
    let view = await reader.peek(position, MAX_HEADER_BYTES);
    if (view.length > endByte - position) view = view.subarray(0, endByte - position);
    const isEnd = position + view.length >= endByte;
    const last = Math.min(isEnd ? view.length : view.length - MAX_HEADER_BYTES + 1, until - position);
    for (let at = view.indexOf(0xff); at >= 0 && at < last; at = view.indexOf(0xff, at + 1)) {
      const header = parseFrameHeader(view, at, info);
      if (header) return { offset: position + at, header };
    }
    position += last;
  }
  return undefined;
}

/** CRC-16 of `[from, to)`, continuing from `crc`; 0 for one whole frame. */
async function crc16Of(reader: BlockReader, from: number, to: number, crc = 0): Promise<number> {
  for (let position = from; position < to; ) {
    let view = await reader.peek(position, 1);
    if (view.length > to - position) view = view.subarray(0, to - position);
    crc = crc16(view, crc);
    position += view.length;
  }
  return crc;
}

/**
 * Whether the last frame is all there: its checksum comes out right somewhere. After it may stand a piece of the next
 * header, or any rubbish when the length in the file's header says that this is the last frame.
 */
async function isWholeFrame(reader: BlockReader, from: number, to: number, isLast: boolean): Promise<boolean> {
  const trustedFrom = isLast ? from : to - MAX_HEADER_BYTES;
  let crc = 0;
  for (let position = from; position < to; ) {
    let view = await reader.peek(position, 1);
    if (view.length > to - position) view = view.subarray(0, to - position);
    for (let i = 0; i < view.length; i++) {
      crc = crc16(view.subarray(i, i + 1), crc);
      if (crc === 0 && position + i >= trustedFrom) return true;
    }
    position += view.length;
  }
  return false;
}

/** @param damagedBytes bytes between the two of which nothing is known */
function gapBetween(info: StreamInfo, before: Candidate, after: Candidate, damagedBytes: number): number {
  if (before.header.isVariable !== after.header.isVariable) return 0;
  return gapFrom(info, expectedNumber(before), after, damagedBytes);
}

/**
 * What is missing in front of the first frame: nothing where it follows the metadata at once, as in a recording that
 * somebody tuned into.
 */
const gapInFront = (info: StreamInfo, first: Candidate, damagedBytes: number): number =>
  damagedBytes > 0 ? gapFrom(info, 0, first, damagedBytes) : 0;

function gapFrom(info: StreamInfo, expected: number, after: Candidate, damagedBytes: number): number {
  const { number, isVariable, blockSamples } = after.header;
  const perNumber = isVariable ? 1 : info.maxBlockSamples;
  const samples = (number - expected) * perNumber;
  if (samples <= 0) return 0;
  const isShort = samples <= MAX_GAP_SECONDS * info.sampleRateHz;
  const isInLength = number * perNumber + blockSamples <= info.totalSamples;
  const hasRoom = samples <= Math.floor(damagedBytes / MIN_FRAME_BYTES) * info.maxBlockSamples;
  return isShort || isInLength || hasRoom ? samples : 0;
}
