import type { BlockReader } from '../../block-reader.ts';
import type { Container, Part } from '../../container.ts';
import { blockPackets, pcmBlocks } from '../../frames.ts';
import { pcmDecoder } from '../../packets/pcm-decoder.ts';
import { onePiece } from '../../pieces.ts';
import { type AudioResult, fail, ok } from '../../result.ts';
import type { DecoderPort } from '../../types.ts';
import { openMpeg } from '../mp3/index.ts';
import { behindWarning, isWave } from './behind.ts';
import { type BlockFormat, blockSamples } from './block-codecs.ts';
import { readWavHeader, type WavHeader } from './header.ts';

/** WAV, RF64 and BW64: uncompressed, A-law, µ-law, ADPCM, GSM 6.10, and MPEG audio. */
export const wav: Container = {
  format: 'wav',
  hasMagic: true,

  detect: isWave,

  async open(reader, startByte, decoders) {
    const header = await readWavHeader(reader, startByte);
    if (!header.ok) return header;
    const part = await partOf(reader, header.value, decoders);
    if (!part.ok) return part;
    const { dataOffset, dataBytes, warning } = header.value;
    const { warnings } = part.value;
    return ok({
      ...part.value,
      format: 'wav',
      where: 'The WAV file',
      // MPEG audio has something to say itself.
      warnings: async (faults, end) => [
        ...(warning === undefined ? [] : [warning]),
        ...(await behindWarning(reader, dataOffset + dataBytes)),
        ...((await warnings?.(faults, end)) ?? []),
      ],
    });
  },
};

async function partOf(
  reader: BlockReader,
  header: WavHeader,
  decoders: DecoderPort,
): Promise<AudioResult<Omit<Part, 'format' | 'where'>>> {
  const { format, dataOffset, dataBytes } = header;
  switch (format.kind) {
    case 'pcm': {
      const { sampleRateHz, pcm } = format;
      const blocks = pcmBlocks(pcm, dataOffset, dataBytes);
      return ok({
        codec: 'pcm',
        sampleRateHz,
        channels: pcm.channels,
        openDecoder: () => pcmDecoder(pcm, sampleRateHz, decoders),
        walk: (_, entry) => blockPackets(blocks, entry),
      });
    }
    case 'blocks': {
      const { blocks } = format;
      const layout = { dataOffset, dataBytes, blockBytes: blocks.blockBytes, samplesOf: samplesOf(blocks) };
      return ok({
        ...blocks,
        openDecoder: () => decoders.open(blocks),
        walk: (_, entry) => blockPackets(layout, entry),
        heard: () => onePiece(0, blockTotal(blocks, header)),
      });
    }
    case 'mpeg':
      if (dataBytes === 0) return fail('no_samples', 'The WAV file has no samples in it.');
      return openMpeg(reader, dataOffset, dataOffset + dataBytes, decoders);
  }
}

const samplesOf = (format: BlockFormat) => (bytes: number) => blockSamples(format, bytes);

/** Samples of all blocks; the fact chunk tells where the padding of the last one begins. */
function blockTotal(format: BlockFormat, { dataBytes, factSamples }: WavHeader): number {
  const whole = Math.floor(dataBytes / format.blockBytes);
  const perBlock = blockSamples(format, format.blockBytes);
  const total = whole * perBlock + blockSamples(format, dataBytes - whole * format.blockBytes);
  return factSamples !== undefined && factSamples < total && factSamples > total - perBlock ? factSamples : total;
}
