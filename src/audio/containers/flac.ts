import { type AudioResult, fail, ok } from '../audio-ports.ts';
import type { BlockReader } from '../block-reader.ts';
import { hasAscii, u16be, u24be, u32be } from '../bytes.ts';
import { type Container, type Faults, isUsableRate, MAX_RATE_HZ, MIN_RATE_HZ, type PacketWalk } from '../container.ts';
import { crc8, crc16 } from '../crc.ts';

/** The STREAMINFO block (RFC 9639 §8.2). */
interface StreamInfo {
  readonly maxBlockSamples: number;
  readonly sampleRateHz: number;
  readonly channels: number;
  readonly bitsPerSample: number;
  /** 0 if unknown to the encoder. */
  readonly totalSamples: number;
}

export const STREAM_INFO_BYTES = 34;

/** The decoder's limit; 32-bit FLAC exists since 2022 and is rare. */
const MAX_BITS = 24;

/** @param bytes the 34 bytes of the block */
export function parseStreamInfo(bytes: Uint8Array): StreamInfo {
  return {
    maxBlockSamples: u16be(bytes, 2),
    sampleRateHz: u24be(bytes, 10) >> 4,
    channels: ((bytes[12] >> 1) & 7) + 1,
    bitsPerSample: (((bytes[12] & 1) << 4) | (bytes[13] >> 4)) + 1,
    totalSamples: (bytes[13] & 15) * 2 ** 32 + u32be(bytes, 14),
  };
}

/** Longest possible frame of `blockSamples`, bytes: verbatim samples, one more bit for a side channel, headers. */
const maxFrameBytes = (info: StreamInfo, blockSamples: number): number =>
  Math.ceil((blockSamples * info.channels * (info.bitsPerSample + 1)) / 8) + 64 + 8 * info.channels;

/** Metadata blocks walked; real files have fewer than twenty. */
const MAX_METADATA_BLOCKS = 1000;

/** Reads STREAMINFO and finds the first byte after the metadata. */
async function readMetadata(
  reader: BlockReader,
  startByte: number,
): Promise<AudioResult<{ info: StreamInfo; raw: Uint8Array; firstByte: number }>> {
  const head = await reader.peek(startByte, 8 + STREAM_INFO_BYTES);
  if (head.length < 8 + STREAM_INFO_BYTES || (head[4] & 0x7f) !== 0 || u24be(head, 5) < STREAM_INFO_BYTES) {
    return fail('corrupt', 'The header of the FLAC file is damaged.');
  }
  const raw = head.slice(8, 8 + STREAM_INFO_BYTES);
  const info = parseStreamInfo(raw);
  if (!isUsableRate(info.sampleRateHz)) {
    const range = `${MIN_RATE_HZ} to ${MAX_RATE_HZ} Hz`;
    return fail('unsupported', `The FLAC file has a sample rate of ${info.sampleRateHz} Hz; ${range} are supported.`);
  }
  if (info.bitsPerSample > MAX_BITS) {
    return fail('unsupported', `FLAC files with ${info.bitsPerSample} bits a sample are not supported.`);
  }
  let offset = startByte + 4;
  for (let count = 0; count < MAX_METADATA_BLOCKS; count++) {
    const block = await reader.peek(offset, 4);
    // 0xff is no metadata type: the last-block flag was lost, and this is a frame.
    if (block.length < 4 || block[0] === 0xff) break;
    offset += 4 + u24be(block, 1);
    if (block[0] & 0x80) break;
  }
  return ok({ info, raw, firstByte: offset });
}

/** A FLAC frame header (RFC 9639 §9.1). */
interface FlacFrameHeader {
  readonly headerBytes: number;
  readonly isVariable: boolean;
  /** Frame number of a fixed block size, number of the first sample of a variable one. */
  readonly number: number;
  /** Samples per channel in this frame. */
  readonly blockSamples: number;
}

/** Longest header: 4 fixed bytes, 7 of the number, 2 of the block size, 2 of the rate, checksum. */
export const MAX_HEADER_BYTES = 16;

const RATES_HZ = [0, 88200, 176400, 192000, 8000, 16000, 22050, 24000, 32000, 44100, 48000, 96000];

/**
 * The header at `at`, or undefined: the checksum, the rate and the channel count must be right. About one in 2^23
 * random positions passes; `number` and the checksum of the complete frame reveal these.
 */
export function parseFrameHeader(bytes: Uint8Array, at: number, info: StreamInfo): FlacFrameHeader | undefined {
  if (at + 6 > bytes.length || bytes[at] !== 0xff || (bytes[at + 1] & 0xfe) !== 0xf8) return undefined;
  const blockCode = bytes[at + 2] >> 4;
  const rateCode = bytes[at + 2] & 15;
  const channelCode = bytes[at + 3] >> 4;
  const bitsCode = (bytes[at + 3] >> 1) & 7;
  if (blockCode === 0 || rateCode === 15 || channelCode > 10 || bitsCode === 3 || bytes[at + 3] & 1) return undefined;
  if ((channelCode > 7 ? 2 : channelCode + 1) !== info.channels) return undefined;

  const isVariable = (bytes[at + 1] & 1) === 1;
  const coded = readNumber(bytes, at + 4);
  if (!coded || (!isVariable && coded.length > 6)) return undefined;
  let position = at + 4 + coded.length;
  const rateBytes = rateCode === 12 ? 1 : rateCode > 12 ? 2 : 0;
  const blockBytes = blockCode === 6 ? 1 : blockCode === 7 ? 2 : 0;
  const end = position + blockBytes + rateBytes;
  if (end >= bytes.length || crc8(bytes, at, end) !== bytes[end]) return undefined;

  const blockSamples =
    blockBytes === 1
      ? bytes[position] + 1
      : blockBytes === 2
        ? u16be(bytes, position) + 1
        : blockCode === 1
          ? 192
          : blockCode < 6
            ? 576 << (blockCode - 2)
            : 256 << (blockCode - 8);
  position += blockBytes;
  const rateHz =
    rateCode === 0
      ? info.sampleRateHz
      : rateCode < 12
        ? RATES_HZ[rateCode]
        : rateCode === 12
          ? bytes[position] * 1000
          : u16be(bytes, position) * (rateCode === 14 ? 10 : 1);
  if (rateHz !== info.sampleRateHz) return undefined;
  return { headerBytes: end + 1 - at, isVariable, number: coded.value, blockSamples };
}

/** The frame or sample number, coded like UTF-8 but up to 36 bits long. */
function readNumber(bytes: Uint8Array, at: number): { value: number; length: number } | undefined {
  const first = bytes[at];
  if (first < 0x80) return { value: first, length: 1 };
  if (first < 0xc0 || first === 0xff) return undefined;
  const length = Math.clz32(~(first << 24));
  let value = first & (0x7f >> length);
  for (let i = 1; i < length; i++) {
    const byte = bytes[at + i];
    if (byte === undefined || (byte & 0xc0) !== 0x80) return undefined;
    value = value * 64 + (byte & 0x3f);
  }
  return { value, length };
}

interface Candidate {
  readonly offset: number;
  readonly header: FlacFrameHeader;
}

/** Longer gaps indicate concatenated files, unless the length in the header or damaged bytes indicate damage. */
const MAX_GAP_SECONDS = 10;

/** The shortest frame: a header with its checksum, a constant, and the checksum after it. */
const MIN_FRAME_BYTES = 10;

/** False headers in one walk: random bytes have one in 16 MB. Bounds the time for a file made of false headers. */
const MAX_FALSE_HEADERS = 100_000;

const expectedNumber = ({ header }: Candidate): number => header.number + (header.isVariable ? header.blockSamples : 1);

/**
 * The frames as packets. FLAC frames do not state their length: a frame ends at the next header. A header is accepted
 * if its number is the next one, or if the checksum of the previous frame is right. Numbers that start again
 * (concatenated files) are accepted; missing numbers are a gap. A walk from any frame finds the same frames as the walk
 * from the start.
 *
 * @param firstByte after the metadata
 * @param entry a frame that an earlier walk has found
 */
async function* flacPackets(
  reader: BlockReader,
  info: StreamInfo,
  firstByte: number,
  faults: Faults,
  entry?: number,
): PacketWalk {
  const endByte = reader.sizeBytes;
  const limits = { reader, info, endByte, falseHeadersLeft: MAX_FALSE_HEADERS };
  const entryFrame = entry === undefined ? undefined : await nextHeader(limits, entry, entry + 1);
  let current = entryFrame ?? (await firstChained(limits, entry ?? firstByte));
  let sample = Number(faults.samples ?? 0);
  let gapSamples = current && entry === undefined ? gapBeforeFirst(info, current, current.offset - firstByte) : 0;
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

/** The frame after `current`, verified by its number or by the checksum of `current`. */
async function nextFrame(limits: Limits, current: Candidate): Promise<Candidate | undefined> {
  const { offset, header } = current;
  const until = Math.min(limits.endByte, offset + maxFrameBytes(limits.info, header.blockSamples) + 1);
  const expected = expectedNumber(current);
  let from = offset + header.headerBytes;
  // Checksum of `[offset, checkedTo)`, continued at each uncertain header.
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

/** The first header from `from` that a following frame, or a right checksum up to the end, verifies. */
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

/** The first possible header of this stream in `[from, until)`. */
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

/** CRC-16 of `[from, to)`, continuing from `crc`; 0 for one complete frame. */
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
 * Whether the last frame is complete: its checksum is right at some end. A fragment of the next header may follow, or
 * any bytes if the length in the file's header shows that this is the last frame.
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

/** @param damagedBytes damaged bytes between the two frames */
function gapBetween(info: StreamInfo, before: Candidate, after: Candidate, damagedBytes: number): number {
  if (before.header.isVariable !== after.header.isVariable) return 0;
  return gapFrom(info, expectedNumber(before), after, damagedBytes);
}

/** Samples missing before the first frame: none if it directly follows the metadata, as in a recorded live stream. */
const gapBeforeFirst = (info: StreamInfo, first: Candidate, damagedBytes: number): number =>
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

/** Bytes after the last frame that are searched for the start of another file. */
const MAX_SEARCH_BYTES = 16 << 20;
/** Magic, and the head of STREAMINFO without the last-block flag. */
const STREAM_HEAD = Uint8Array.of(0x66, 0x4c, 0x61, 0x43, 0, 0, 0, 34);

/** @param seconds length of the audio that was read */
const trailingStreamWarning = (seconds: number): string =>
  `The FLAC file continues at another sample rate or with other channels after ${seconds.toFixed(1)} s; ` +
  'that part was left out.';

/** Whether another file begins after the last frame that was read. */
async function hasTrailingStream(reader: BlockReader, from: number, endByte: number): Promise<boolean> {
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

/** Native FLAC, fixed and variable block size. */
export const flac: Container = {
  format: 'flac',
  hasMagic: true,

  detect: (head) => hasAscii(head, 0, 'fLaC'),

  async open(reader, startByte, decoders) {
    const metadata = await readMetadata(reader, startByte);
    if (!metadata.ok) return metadata;
    const { info, raw, firstByte } = metadata.value;
    const { sampleRateHz, channels } = info;
    return ok({
      format: 'flac',
      displayName: 'The FLAC file',
      codec: 'flac',
      sampleRateHz,
      channels,
      openDecoder: () => decoders.open({ codec: 'flac', sampleRateHz, channels, extraData: raw }),
      walk: (faults, entry) => flacPackets(reader, info, firstByte, faults, entry),
      async warnings(faults, { position }) {
        const gapSeconds = (Number(faults.gapSamples ?? 0) / sampleRateHz).toFixed(1);
        const lastFrame = Number(faults.lastFrame ?? firstByte);
        return [
          ...(faults.isCut || position < info.totalSamples
            ? ['The FLAC file is incomplete; the available part was used.']
            : []),
          ...((await hasTrailingStream(reader, lastFrame, reader.sizeBytes))
            ? [trailingStreamWarning(position / sampleRateHz)]
            : []),
          ...(faults.gapSamples
            ? [`Damaged parts of the FLAC file, ${gapSeconds} s in all, were taken as silence.`]
            : []),
        ];
      },
    });
  },
};
