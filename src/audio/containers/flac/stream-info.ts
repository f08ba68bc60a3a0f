import type { BlockReader } from '../../block-reader.ts';
import { u16be, u24be, u32be } from '../../bytes.ts';
import { isUsableRate, MAX_RATE_HZ, MIN_RATE_HZ } from '../../container.ts';
import { type AudioResult, fail, ok } from '../../result.ts';

/** The STREAMINFO block (RFC 9639 §8.2). */
export interface StreamInfo {
  readonly maxBlockSamples: number;
  readonly sampleRateHz: number;
  readonly channels: number;
  readonly bitsPerSample: number;
  /** 0 when the encoder did not know. */
  readonly totalSamples: number;
}

export const STREAM_INFO_BYTES = 34;

/** The decoder's limit; 32-bit FLAC exists since 2022 and is hardly ever met. */
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

/** Longest possible frame of `blockSamples`, bytes: samples as they are, one more bit for a side channel, headers. */
export const maxFrameBytes = (info: StreamInfo, blockSamples: number): number =>
  Math.ceil((blockSamples * info.channels * (info.bitsPerSample + 1)) / 8) + 64 + 8 * info.channels;

/** Metadata blocks walked; real files have fewer than twenty. */
const MAX_METADATA_BLOCKS = 1000;

/** Reads STREAMINFO and finds the first byte behind the metadata. */
export async function readMetadata(
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
    // A metadata type that cannot be: the last-block flag was lost, and this is a frame.
    if (block.length < 4 || block[0] === 0xff) break;
    offset += 4 + u24be(block, 1);
    if (block[0] & 0x80) break;
  }
  return ok({ info, raw, firstByte: offset });
}
