import type { BlockReader } from '../block-reader.ts';
import { hasAscii } from '../bytes.ts';
import { MPEG4_RATES_HZ } from '../codec-config.ts';
import type { FrameSyntax } from '../frame-walker.ts';

/** Content of an ADTS header (ISO/IEC 13818-7 §6.2, 14496-3 §1.A.2). */
interface AdtsHeader {
  /** Rate of the core coder; half of the sample rate with bandwidth extension. */
  readonly coreRateHz: number;
  /** 0 if the coded data state the channels. */
  readonly channels: number;
  /** Coded blocks of 1024 samples in the frame. */
  readonly blocks: number;
}

/** Samples of one block at the core rate. */
export const BLOCK_SAMPLES = 1024;

const CHANNELS = [0, 1, 2, 3, 4, 5, 6, 8];

/** Fixed part of the header. */
export const ADTS_HEADER_BYTES = 7;
/** The length has 13 bits. */
export const MAX_ADTS_FRAME_BYTES = 8191;

/** Lock bits, which all frames of one stream share: version, object type, rate. */
export const adtsLockAt = (bytes: Uint8Array, at: number): number =>
  ((bytes[at + 1] & 0xfe) << 8) | (bytes[at + 2] & 0xfc);

/** Length of a frame with these lock bits; 0 if none begins at `at`. */
export function adtsFrameBytesAt(bytes: Uint8Array, at: number, lock: number): number {
  if (at + ADTS_HEADER_BYTES > bytes.length || bytes[at] !== 0xff || (bytes[at + 1] & 0xf6) !== 0xf0) return 0;
  if (adtsLockAt(bytes, at) !== lock || ((bytes[at + 2] >> 2) & 15) >= MPEG4_RATES_HZ.length) return 0;
  const length = ((bytes[at + 3] & 3) << 11) | (bytes[at + 4] << 3) | (bytes[at + 5] >> 5);
  return length > ADTS_HEADER_BYTES ? length : 0;
}

/** The frames of the stream with these lock bits. */
export const adtsSyntax = (lock: number): FrameSyntax => ({
  headerBytes: ADTS_HEADER_BYTES,
  maxFrameBytes: MAX_ADTS_FRAME_BYTES,
  syncByte: 0xff,
  chain: 3,
  frameBytesAt: (bytes, at) => adtsFrameBytesAt(bytes, at, lock),
});

/** Reads a header that `adtsFrameBytesAt` accepts. */
export const parseAdtsHeader = (bytes: Uint8Array, at: number): AdtsHeader => ({
  coreRateHz: MPEG4_RATES_HZ[(bytes[at + 2] >> 2) & 15],
  channels: CHANNELS[((bytes[at + 2] & 1) << 2) | (bytes[at + 3] >> 6)],
  blocks: (bytes[at + 6] & 3) + 1,
});

/** An ADTS header for a frame of one block. @param codes of MPEG-4 */
export function adtsHeader(
  codes: { readonly objectType: number; readonly rateIndex: number; readonly channelConfiguration: number },
  frameBytes: number,
): Uint8Array {
  const { objectType, rateIndex, channelConfiguration } = codes;
  return Uint8Array.of(
    0xff,
    0xf1,
    ((objectType - 1) << 6) | (rateIndex << 2) | (channelConfiguration >> 2),
    ((channelConfiguration & 3) << 6) | (frameBytes >> 11),
    (frameBytes >> 3) & 0xff,
    ((frameBytes & 7) << 5) | 0x1f,
    0xfc,
  );
}

/** Frame header of MPEG-1/2/2.5 audio (ISO/IEC 11172-3 §2.4.1.3, 13818-3). Layer I is parsed only to name it. */
export interface MpegHeader {
  /** Version, layer and rate bits, equal in all frames of one stream. */
  readonly lock: number;
  readonly layer: 1 | 2 | 3;
  readonly isMpeg1: boolean;
  readonly sampleRateHz: number;
  readonly channels: 1 | 2;
  /** Length of the frame including its header; 0 for free format, which does not state it. */
  readonly frameBytes: number;
  /** Samples per channel. */
  readonly frameSamples: number;
}

/** Longest frame: layer II, 160 kbit/s at 8 kHz, with padding. */
const MAX_FRAME_BYTES = 2881;

const KBPS_MPEG1_L3 = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320];
const KBPS_MPEG1_L2 = [0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384];
const KBPS_MPEG1_L1 = [0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448];
const KBPS_MPEG2_L23 = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160];
const KBPS_MPEG2_L1 = [0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256];
const RATES_MPEG1 = [44100, 48000, 32000];

/** Lock bits of a header. */
const lockAt = (bytes: Uint8Array, at: number): number =>
  (((bytes[at + 1] & 0x1e) << 8) | (bytes[at + 2] & 0x0c)) >>> 0;

/** Fast test for a possible header with these lock bits, except free format. */
const isHeaderAt = (bytes: Uint8Array, at: number, lock: number): boolean =>
  bytes[at] === 0xff &&
  (bytes[at + 1] & 0xe0) === 0xe0 &&
  lockAt(bytes, at) === lock &&
  bytes[at + 2] >= 0x10 &&
  bytes[at + 2] < 0xf0 &&
  (bytes[at + 3] & 3) !== 2;

const layerAt = (bytes: Uint8Array, at: number) => (4 - ((bytes[at + 1] >> 1) & 3)) as 1 | 2 | 3;

const rateAt = (bytes: Uint8Array, at: number): number => {
  const versionBits = (bytes[at + 1] >> 3) & 3;
  return RATES_MPEG1[(bytes[at + 2] >> 2) & 3] >> (versionBits === 3 ? 0 : versionBits === 2 ? 1 : 2);
};

const samplesOf = (layer: 1 | 2 | 3, isMpeg1: boolean): number =>
  layer === 1 ? 384 : layer === 2 || isMpeg1 ? 1152 : 576;

/** Bytes of the frame with a valid header at `at`; 0 for free format. Called for every frame: allocates nothing. */
function frameBytesAt(bytes: Uint8Array, at: number): number {
  const isMpeg1 = (bytes[at + 1] & 0x18) === 0x18;
  const layer = layerAt(bytes, at);
  const kbps = bitrates(isMpeg1, layer)[bytes[at + 2] >> 4];
  if (kbps === 0) return 0;
  const slotSamples = layer === 1 ? 12 : samplesOf(layer, isMpeg1) / 8;
  const slots = Math.floor((slotSamples * 1000 * kbps) / rateAt(bytes, at)) + ((bytes[at + 2] >> 1) & 1);
  return layer === 1 ? slots * 4 : slots;
}

/** The header of four bytes at `at`; undefined if invalid. */
export function parseHeader(bytes: Uint8Array, at: number): MpegHeader | undefined {
  if (at + 4 > bytes.length || bytes[at] !== 0xff || (bytes[at + 1] & 0xe0) !== 0xe0) return undefined;
  const versionBits = (bytes[at + 1] >> 3) & 3;
  const layerBits = (bytes[at + 1] >> 1) & 3;
  const bitrateIndex = bytes[at + 2] >> 4;
  const rateIndex = (bytes[at + 2] >> 2) & 3;
  const emphasis = bytes[at + 3] & 3;
  if (versionBits === 1 || layerBits === 0 || bitrateIndex === 15 || rateIndex === 3 || emphasis === 2)
    return undefined;
  const isMpeg1 = versionBits === 3;
  const layer = layerAt(bytes, at);
  return {
    lock: lockAt(bytes, at),
    layer,
    isMpeg1,
    sampleRateHz: rateAt(bytes, at),
    channels: bytes[at + 3] >> 6 === 3 ? 1 : 2,
    frameBytes: frameBytesAt(bytes, at),
    frameSamples: samplesOf(layer, isMpeg1),
  };
}

/** The frames of the stream with these lock bits. */
export const mpegSyntax = (lock: number): FrameSyntax => ({
  headerBytes: 4,
  maxFrameBytes: MAX_FRAME_BYTES,
  syncByte: 0xff,
  chain: 3,
  frameBytesAt: (bytes, at) => (isHeaderAt(bytes, at, lock) ? frameBytesAt(bytes, at) : 0),
});

function bitrates(isMpeg1: boolean, layer: 1 | 2 | 3): readonly number[] {
  if (isMpeg1) return layer === 3 ? KBPS_MPEG1_L3 : layer === 2 ? KBPS_MPEG1_L2 : KBPS_MPEG1_L1;
  return layer === 1 ? KBPS_MPEG2_L1 : KBPS_MPEG2_L23;
}

/** Bytes of side information after the header of a layer III frame. */
export const sideInfoBytes = (header: MpegHeader): number =>
  header.isMpeg1 ? (header.channels === 1 ? 17 : 32) : header.channels === 1 ? 9 : 17;

/** Kind of stream. */
export type MpegFamily = 'mp3' | 'free-format' | 'layer1' | 'layer2' | 'adts';

interface MpegSync {
  readonly family: MpegFamily;
  /** Offset of the first frame. */
  readonly at: number;
  readonly header?: MpegHeader;
}

/** Bytes at the start that are searched for the first frame. */
export const SYNC_BYTES = 1 << 16;

/** Successive headers that verify a stream. */
const CHAIN = 4;

/** Successive headers of free format, which do not state the distance to the next. */
const FREE_CHAIN = 8;
/** Shortest frame of free format: 32 kbit/s at 48 kHz. Closer headers are samples or pictures. */
const MIN_FREE_BYTES = 96;
/** Longest frame of free format: 640 kbit/s at 32 kHz, with one byte of padding. */
const MAX_FREE_BYTES = 2881;
/** Positions that are tested for free format: a stream begins at one of the first. */
const MAX_FREE_TRIES = 64;

/**
 * Finds the first frame of an MPEG audio or ADTS stream by a chain of consistent headers. Layer I and free format,
 * which are not supported, are returned only if nothing else is found: samples and pictures with many bytes of 0xff
 * look like them, also before audio.
 *
 * @param head the first bytes of the audio
 * @param isAll whether `head` is all of the audio, so that a chain may also end with it
 */
export function findMpegSync(head: Uint8Array, isAll: boolean): MpegSync | undefined {
  let unsupported: MpegSync | undefined;
  let freeTries = 0;
  for (let at = head.indexOf(0xff); at >= 0 && at + 4 <= head.length; at = head.indexOf(0xff, at + 1)) {
    if ((head[at + 1] & 0xe0) !== 0xe0) continue;
    const header = parseHeader(head, at);
    if (header && header.frameBytes > 0 && isChain(head, at, isAll, (p) => mpegLength(head, p, header.lock))) {
      if (header.layer !== 1) return { family: header.layer === 3 ? 'mp3' : 'layer2', at, header };
      unsupported ??= { family: 'layer1', at, header };
    }
    const isFree = !unsupported && header?.frameBytes === 0 && freeTries++ < MAX_FREE_TRIES && isFreeFormat(head, at);
    if (isFree) unsupported = { family: 'free-format', at, header };
    const lock = adtsLockAt(head, at);
    if (isChain(head, at, isAll, (p) => adtsFrameBytesAt(head, p, lock))) return { family: 'adts', at };
  }
  return unsupported;
}

/** Warning of audio after the last frame of a stream: frames of another rate or coding are not read. */
export async function trailingStreamWarning(
  name: string,
  reader: BlockReader,
  rest: { readonly startByte: number; readonly endByte: number },
  seconds: number,
): Promise<string[]> {
  const wanted = Math.min(SYNC_BYTES, rest.endByte - rest.startByte);
  const view = await reader.peek(rest.startByte, wanted);
  if (!findMpegSync(view.subarray(0, wanted), false)) return [];
  return [
    `The ${name} file continues at another sample rate or in another coding after ${seconds.toFixed(1)} s; ` +
      'that part was left out.',
  ];
}

function isChain(head: Uint8Array, at: number, isAll: boolean, lengthAt: (at: number) => number): boolean {
  let end = at;
  let count = 0;
  while (count < CHAIN && end + 4 <= head.length) {
    const length = lengthAt(end);
    if (length === 0) break;
    end += length;
    count++;
  }
  if (count >= CHAIN) return true;
  if (!isAll || at > 0 || count === 0) return false;
  // The few frames of a very short file must fill it up to a tag; only the last of several may be truncated.
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

/** Whether free format begins at `at`: equal headers at equal distances (one byte more or less for padding). */
function isFreeFormat(head: Uint8Array, at: number): boolean {
  const isSame = (p: number): boolean =>
    head[p + 1] === head[at + 1] &&
    ((head[p + 2] ^ head[at + 2]) & ~PADDING_BIT) === 0 &&
    ((head[p + 3] ^ head[at + 3]) & ~MODE_EXTENSION_BITS) === 0;
  const nextAfter = (before: number): number => {
    const until = Math.min(head.length - 4, before + MAX_FREE_BYTES);
    for (let p = before + 4; p <= until; p++) if (head[p] === 0xff && isSame(p)) return p;
    return -1;
  };
  let before = at;
  let distance = 0;
  for (let count = 1; count < FREE_CHAIN; count++) {
    const next = nextAfter(before);
    if (next < 0 || (distance > 0 && Math.abs(next - before - distance) > 2)) return false;
    distance = next - before;
    if (distance < MIN_FREE_BYTES) return false;
    before = next;
  }
  return true;
}

/** Bits that may differ between the frames of one stream, in the third and fourth byte of a header. */
const PADDING_BIT = 0x02;
const MODE_EXTENSION_BITS = 0x30;
