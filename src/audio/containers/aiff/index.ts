import type { BlockReader } from '../../block-reader.ts';
import { hasAscii } from '../../bytes.ts';
import type { EffectsChannels } from '../../channel-layout.ts';
import type { Container, IndexBase } from '../../container.ts';
import { ima4Samples, readIma4 } from '../../ima4.ts';
import { type PcmEncoding, readPcm } from '../../pcm.ts';
import { fail, ok } from '../../result.ts';
import type { DecoderPort } from '../../types.ts';
import { readAiffHeader } from './header.ts';

interface AiffPcmIndex extends IndexBase {
  readonly format: 'aiff';
  readonly codec: 'pcm';
  readonly encoding: PcmEncoding;
  readonly bytesPerSample: number;
  readonly isBigEndian?: boolean;
  readonly effects?: EffectsChannels;
  readonly dataOffset: number;
}

interface AiffIma4Index extends IndexBase {
  readonly format: 'aiff';
  readonly codec: 'adpcm-ima-qt';
  readonly dataOffset: number;
  readonly dataBytes: number;
}

export type AiffIndex = AiffPcmIndex | AiffIma4Index;

/** AIFF and AIFF-C: uncompressed of either byte order, float, A-law, µ-law, IMA ADPCM. */
export const aiff: Container<AiffIndex> = {
  format: 'aiff',
  hasMagic: true,

  detect: (head) => hasAscii(head, 0, 'FORM') && (hasAscii(head, 8, 'AIFF') || hasAscii(head, 8, 'AIFC')),

  async probe(reader, startByte) {
    const header = await readAiffHeader(reader, startByte);
    if (!header.ok) return header;
    const { format, dataOffset, dataBytes, warning } = header.value;
    const totalSamples =
      format.kind === 'pcm'
        ? Math.floor(dataBytes / (format.pcm.bytesPerSample * format.pcm.channels))
        : ima4Samples(format.channels, dataBytes);
    if (totalSamples === 0) return fail('no_samples', 'The AIFF file has no samples in it.');
    const { sampleRateHz } = format;
    const common = {
      format: 'aiff',
      sampleRateHz,
      totalSamples,
      durationSeconds: totalSamples / sampleRateHz,
      ...(warning === undefined ? {} : { warning }),
      dataOffset,
    } as const;
    return format.kind === 'pcm'
      ? ok({ ...common, codec: 'pcm', ...format.pcm })
      : ok({ ...common, codec: 'adpcm-ima-qt', channels: format.channels, dataBytes });
  },

  readMono(reader: BlockReader, index: AiffIndex, decoders: DecoderPort, startSample: number) {
    return index.codec === 'pcm' ? readPcm(reader, index, startSample) : readIma4(reader, index, decoders, startSample);
  },
};
