import type { FrameSyntax } from '../../frame-walker.ts';

/** Frame headers of MPEG-1/2/2.5 audio (ISO/IEC 11172-3 §2.4.1.3, 13818-3). Layer I is parsed to be named. */
export interface MpegHeader {
  /** Version, layer and rate bits: equal in all frames of one stream. */
  readonly lock: number;
  readonly layer: 1 | 2 | 3;
  readonly isMpeg1: boolean;
  readonly sampleRateHz: number;
  readonly channels: 1 | 2;
  /** Whole frame with its header; 0 for free format, whose length the header does not say. */
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

/** The bits that all frames of a stream share. */
const lockAt = (bytes: Uint8Array, at: number): number =>
  (((bytes[at + 1] & 0x1e) << 8) | (bytes[at + 2] & 0x0c)) >>> 0;

/** Cheap test: a possible header (free format excluded) of the stream with these lock bits. */
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

/** Bytes of the frame whose valid header is at `at`; 0 for free format. For every frame of a file, hence without an object. */
function frameBytesAt(bytes: Uint8Array, at: number): number {
  const isMpeg1 = (bytes[at + 1] & 0x18) === 0x18;
  const layer = layerAt(bytes, at);
  const kbps = bitrates(isMpeg1, layer)[bytes[at + 2] >> 4];
  if (kbps === 0) return 0;
  const slotSamples = layer === 1 ? 12 : samplesOf(layer, isMpeg1) / 8;
  const slots = Math.floor((slotSamples * 1000 * kbps) / rateAt(bytes, at)) + ((bytes[at + 2] >> 1) & 1);
  return layer === 1 ? slots * 4 : slots;
}

/** The header at `at`, or undefined; needs four bytes there. */
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

/** Bytes of side information behind the header of a layer III frame. */
export const sideInfoBytes = (header: MpegHeader): number =>
  header.isMpeg1 ? (header.channels === 1 ? 17 : 32) : header.channels === 1 ? 9 : 17;
