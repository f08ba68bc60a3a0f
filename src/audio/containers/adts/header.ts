import type { FrameSyntax } from '../../frame-walker.ts';

/** What an ADTS header says (ISO/IEC 13818-7 §6.2, 14496-3 §1.A.2). */
export interface AdtsHeader {
  /** Rate of the core coder; with bandwidth extension the sound has twice as many. */
  readonly coreRateHz: number;
  /** 0 where the frame itself says. */
  readonly channels: number;
  /** Coded blocks of 1024 samples in the frame. */
  readonly blocks: number;
}

/** Samples of one block at the core rate. */
export const BLOCK_SAMPLES = 1024;

const RATES_HZ = [96000, 88200, 64000, 48000, 44100, 32000, 24000, 22050, 16000, 12000, 11025, 8000, 7350];
const CHANNELS = [0, 1, 2, 3, 4, 5, 6, 8];

/** Fixed part of the header. */
export const ADTS_HEADER_BYTES = 7;
/** The length has 13 bits. */
export const MAX_ADTS_FRAME_BYTES = 8191;

/** The bits that all frames of one stream share: version, object type, rate. */
export const adtsLockAt = (bytes: Uint8Array, at: number): number =>
  ((bytes[at + 1] & 0xfe) << 8) | (bytes[at + 2] & 0xfc);

/** Length of the frame of the stream with these lock bits, 0 where none begins. */
export function adtsFrameBytesAt(bytes: Uint8Array, at: number, lock: number): number {
  if (at + ADTS_HEADER_BYTES > bytes.length || bytes[at] !== 0xff || (bytes[at + 1] & 0xf6) !== 0xf0) return 0;
  if (adtsLockAt(bytes, at) !== lock || ((bytes[at + 2] >> 2) & 15) >= RATES_HZ.length) return 0;
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
  coreRateHz: RATES_HZ[(bytes[at + 2] >> 2) & 15],
  channels: CHANNELS[((bytes[at + 2] & 1) << 2) | (bytes[at + 3] >> 6)],
  blocks: (bytes[at + 6] & 3) + 1,
});

/** A header for a frame of one block that came without one, in the codes of MPEG-4. */
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
