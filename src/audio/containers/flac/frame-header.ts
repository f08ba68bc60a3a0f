import { u16be } from '../../bytes.ts';
import { crc8 } from './crc.ts';
import type { StreamInfo } from './stream-info.ts';

/** A FLAC frame header (RFC 9639 §9.1). */
export interface FlacFrameHeader {
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
 * The header at `at`, or undefined where there is none: the checksum, the rate and the channel count must be right.
 * Two random bytes in 2^23 or so pass; what `number` says, and the checksum of the whole frame, tell these.
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
