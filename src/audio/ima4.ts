import type { BlockReader } from './block-reader.ts';
import { fixedBlocks } from './fixed-blocks.ts';
import { decodeFrames } from './frame-stream.ts';
import type { DecoderPort } from './types.ts';

/** Packets of QuickTime's IMA ADPCM ('ima4'), as they stand in AIFF-C and Core Audio files. */
const PACKET_SAMPLES = 64;
const PACKET_BYTES_A_CHANNEL = 34;

export interface Ima4Layout {
  readonly sampleRateHz: number;
  readonly channels: number;
  readonly dataOffset: number;
  readonly dataBytes: number;
  readonly totalSamples: number;
}

/** Samples per channel in `bytes`; a packet that is cut off holds none. */
export const ima4Samples = (channels: number, bytes: number): number =>
  Math.floor(bytes / (PACKET_BYTES_A_CHANNEL * channels)) * PACKET_SAMPLES;

/**
 * Mono samples `[startSample, totalSamples)`. A packet's header holds the upper nine bits of the predictor, the lower seven come from the
 * packet before it: warming up does not bring them back, so they start at 0 in every stretch.
 */
export function readIma4(
  reader: BlockReader,
  layout: Ima4Layout,
  decoders: DecoderPort,
  startSample: number,
): AsyncGenerator<Float32Array> {
  const { sampleRateHz, channels } = layout;
  const timing = { ...layout, frameSamples: PACKET_SAMPLES, skipSamples: 0, warmUpFrames: 0 };
  const blocks = fixedBlocks(reader, { ...layout, blockBytes: PACKET_BYTES_A_CHANNEL * channels });
  const open = () => decoders.open({ codec: 'adpcm-ima-qt', sampleRateHz, channels });
  return decodeFrames(timing, blocks, open, startSample);
}
