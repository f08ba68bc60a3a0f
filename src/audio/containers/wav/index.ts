import type { BlockReader } from '../../block-reader.ts';
import type { EffectsChannels } from '../../channel-layout.ts';
import type { Container, IndexBase } from '../../container.ts';
import { fixedBlocks } from '../../fixed-blocks.ts';
import { decodeFrames } from '../../frame-stream.ts';
import { type PcmEncoding, readPcm } from '../../pcm.ts';
import { type AudioResult, fail, ok } from '../../result.ts';
import type { DecoderPort } from '../../types.ts';
import { type Mp3Index, mp3, probeMpeg } from '../mp3/index.ts';
import { isWave } from './behind.ts';
import { type BlockCodec, type BlockFormat, blockSamples, WARM_UP_BLOCKS } from './block-codecs.ts';
import { readWavHeader, type WavHeader } from './header.ts';

interface WavPcmIndex extends IndexBase {
  readonly format: 'wav';
  readonly codec: 'pcm';
  readonly encoding: PcmEncoding;
  readonly bytesPerSample: number;
  readonly effects?: EffectsChannels;
  readonly dataOffset: number;
}

interface WavBlockIndex extends IndexBase {
  readonly format: 'wav';
  readonly codec: BlockCodec;
  readonly blockBytes: number;
  readonly bitsPerCodedSample: number;
  readonly frameSamples: number;
  readonly dataOffset: number;
  readonly dataBytes: number;
}

/** MPEG audio in a WAV file is read as the same bytes without the WAV header. */
type WavMpegIndex = Omit<Mp3Index, 'format'> & { readonly format: 'wav' };

export type WavIndex = WavPcmIndex | WavBlockIndex | WavMpegIndex;

const NO_SAMPLES = fail('no_samples', 'The WAV file has no samples in it.');

/** WAV, RF64 and BW64: uncompressed, A-law, µ-law, ADPCM, GSM 6.10, and MPEG audio. */
export const wav: Container<WavIndex> = {
  format: 'wav',
  hasMagic: true,

  detect: isWave,

  async probe(reader, startByte) {
    const header = await readWavHeader(reader, startByte);
    if (!header.ok) return header;
    const found = await indexOf(reader, header.value);
    if (!found.ok) return found;
    // MPEG audio has something to say itself.
    const warnings = [header.value.warning, found.value.warning].filter((warning) => warning !== undefined);
    return warnings.length > 0 ? ok({ ...found.value, warning: warnings.join(' ') }) : found;
  },

  async *readMono(reader: BlockReader, index: WavIndex, decoders: DecoderPort, startSample: number) {
    switch (index.codec) {
      case 'pcm':
        yield* readPcm(reader, index, startSample);
        return;
      case 'mp3':
      case 'mp2':
        yield* mp3.readMono(reader, { ...index, format: 'mp3' }, decoders, startSample);
        return;
      default: {
        const timing = { ...index, skipSamples: 0, warmUpFrames: WARM_UP_BLOCKS[index.codec] };
        yield* decodeFrames(timing, fixedBlocks(reader, index), () => decoders.open(index), startSample);
      }
    }
  },
};

async function indexOf(reader: BlockReader, header: WavHeader): Promise<AudioResult<WavIndex>> {
  const { format, dataOffset, dataBytes } = header;
  switch (format.kind) {
    case 'pcm': {
      const { sampleRateHz, pcm } = format;
      const totalSamples = Math.floor(dataBytes / (pcm.bytesPerSample * pcm.channels));
      if (totalSamples === 0) return NO_SAMPLES;
      const durationSeconds = totalSamples / sampleRateHz;
      return ok({ format: 'wav', codec: 'pcm', sampleRateHz, ...pcm, totalSamples, durationSeconds, dataOffset });
    }
    case 'blocks': {
      const totalSamples = blockTotal(format.blocks, header);
      if (totalSamples === 0) return NO_SAMPLES;
      const durationSeconds = totalSamples / format.blocks.sampleRateHz;
      const frameSamples = blockSamples(format.blocks, format.blocks.blockBytes);
      return ok({
        format: 'wav',
        ...format.blocks,
        totalSamples,
        durationSeconds,
        frameSamples,
        dataOffset,
        dataBytes,
      });
    }
    case 'mpeg': {
      if (dataBytes === 0) return NO_SAMPLES;
      const probed = await probeMpeg(reader, dataOffset, dataOffset + dataBytes);
      return probed.ok ? ok({ ...probed.value, format: 'wav' }) : probed;
    }
  }
}

/** Samples of all blocks; the fact chunk tells where the padding of the last one begins. */
function blockTotal(format: BlockFormat, { dataBytes, factSamples }: WavHeader): number {
  const whole = Math.floor(dataBytes / format.blockBytes);
  const perBlock = blockSamples(format, format.blockBytes);
  const total = whole * perBlock + blockSamples(format, dataBytes - whole * format.blockBytes);
  return factSamples !== undefined && factSamples < total && factSamples > total - perBlock ? factSamples : total;
}
