import type { CodecName } from '../../types.ts';

/** Codings of WAV that come in blocks of one size. */
export type BlockCodec = Extract<CodecName, 'adpcm-ima-wav' | 'adpcm-ms' | 'gsm-ms'>;

export interface BlockFormat {
  readonly codec: BlockCodec;
  readonly sampleRateHz: number;
  readonly channels: number;
  readonly blockBytes: number;
  readonly bitsPerCodedSample: number;
}

const GSM_BLOCK_BYTES = 65;
const GSM_BLOCK_SAMPLES = 320;
/** Far above any encoder's blocks. */
const MAX_BLOCK_BYTES = 1 << 16;
/** Far below any encoder's blocks: shorter ones only cost time. */
const MIN_BLOCK_SAMPLES = 32;

/** Samples per channel that `bytes` of a block hold; 0 when they are too few. */
export function blockSamples({ codec, channels, bitsPerCodedSample }: BlockFormat, bytes: number): number {
  switch (codec) {
    case 'adpcm-ima-wav': {
      // After 4 bytes a channel with one sample in them, groups of 32-bit words take turns between the channels.
      const [groupBytes, groupSamples] = bitsPerCodedSample === 3 ? [12, 32] : [4, 8];
      const left = bytes - 4 * channels;
      return left < 0 ? 0 : 1 + Math.floor(left / (groupBytes * channels)) * groupSamples;
    }
    case 'adpcm-ms':
      // 7 bytes a channel with two samples in them, then four bits a sample.
      return bytes < 7 * channels ? 0 : 2 + Math.floor(((bytes - 7 * channels) * 2) / channels);
    case 'gsm-ms':
      return bytes < GSM_BLOCK_BYTES ? 0 : GSM_BLOCK_SAMPLES;
  }
}

/** Whether the decoder takes such a stream; what is wrong with it otherwise, as the rest of a sentence. */
export function blockFormatFault(format: BlockFormat): string | undefined {
  const { codec, channels, blockBytes, bitsPerCodedSample } = format;
  const maxChannels = codec === 'gsm-ms' ? 1 : codec === 'adpcm-ms' ? 6 : 2;
  if (channels > maxChannels) return `with ${channels} channels`;
  const isBitsGood =
    codec === 'gsm-ms' || bitsPerCodedSample === 4 || (codec === 'adpcm-ima-wav' && bitsPerCodedSample === 3);
  if (!isBitsGood) return `with ${bitsPerCodedSample} bits a sample`;
  if (
    codec === 'gsm-ms'
      ? blockBytes !== GSM_BLOCK_BYTES
      : blockBytes > MAX_BLOCK_BYTES || blockSamples(format, blockBytes) < MIN_BLOCK_SAMPLES
  ) {
    return `in blocks of ${blockBytes} bytes`;
  }
  return undefined;
}
