import type { BlockLayout } from './frames.ts';

/**
 * Packets of QuickTime's IMA ADPCM ('ima4'), as they stand in AIFF-C and Core Audio files. A packet's header holds the
 * upper nine bits of the predictor, the lower seven come from the packet before it.
 */
const PACKET_SAMPLES = 64;
const PACKET_BYTES_A_CHANNEL = 34;

/** A packet that is cut off holds no samples. */
export function ima4Blocks(channels: number, dataOffset: number, dataBytes: number): BlockLayout {
  const blockBytes = PACKET_BYTES_A_CHANNEL * channels;
  const samplesOf = (bytes: number) => Math.floor(bytes / blockBytes) * PACKET_SAMPLES;
  return { dataOffset, dataBytes: Math.floor(dataBytes / blockBytes) * blockBytes, blockBytes, samplesOf };
}
