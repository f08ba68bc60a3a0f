import type { BlockReader } from '../../block-reader.ts';
import type { EffectsChannels } from '../../channel-layout.ts';
import type { Container, IndexBase } from '../../container.ts';
import { ima4Samples, readIma4 } from '../../ima4.ts';
import { shapeFault } from '../../limits.ts';
import { XHE_AAC } from '../../packets/aac.ts';
import { type PcmEncoding, type PcmLayout, readPcm } from '../../pcm.ts';
import { type AudioResult, fail, ok } from '../../result.ts';
import type { DecoderPort } from '../../types.ts';
import { type CafCodedIndex, probeCoded, readCoded } from './coded.ts';
import { type CafDescription, type CafHeader, isCaf, readCafHeader } from './header.ts';

interface CafPcmIndex extends IndexBase {
  readonly format: 'caf';
  readonly codec: 'pcm';
  readonly encoding: PcmEncoding;
  readonly bytesPerSample: number;
  readonly isBigEndian?: boolean;
  readonly effects?: EffectsChannels;
  readonly dataOffset: number;
}

interface CafIma4Index extends IndexBase {
  readonly format: 'caf';
  readonly codec: 'adpcm-ima-qt';
  readonly dataOffset: number;
  readonly dataBytes: number;
}

export type CafIndex = CafPcmIndex | CafIma4Index | CafCodedIndex;

const CODED: Readonly<Record<string, CafCodedIndex['codec']>> = {
  alac: 'alac',
  'aac ': 'aac',
  aach: 'aac',
  aacp: 'aac',
  opus: 'opus',
};

/** Core Audio Format: uncompressed, A-law, µ-law, IMA ADPCM, ALAC, AAC, Opus. */
export const caf: Container<CafIndex> = {
  format: 'caf',
  hasMagic: true,

  detect: isCaf,

  async probe(reader, startByte, decoders): Promise<AudioResult<CafIndex>> {
    const header = await readCafHeader(reader, startByte);
    if (!header.ok) return header;
    const { description } = header.value;
    const fault = shapeFault('Core Audio', description.sampleRateHz, description.channels);
    if (fault) return fault;
    const codec = CODED[description.formatId];
    return codec ? probeCoded(reader, header.value, codec, decoders) : probePlain(header.value);
  },

  readMono(reader: BlockReader, index: CafIndex, decoders: DecoderPort, startSample: number) {
    switch (index.codec) {
      case 'pcm':
        return readPcm(reader, index, startSample);
      case 'adpcm-ima-qt':
        return readIma4(reader, index, decoders, startSample);
      default:
        return readCoded(reader, index, decoders, startSample);
    }
  },
};

/** Codings whose packets are all of one length. */
function probePlain(header: CafHeader): AudioResult<CafIndex> {
  const { description, dataOffset, dataBytes, packetTable, effects, warning } = header;
  const { sampleRateHz, channels, formatId } = description;
  if (formatId === 'usac') {
    return fail('unsupported', `The Core Audio file holds audio in ${XHE_AAC}, which is not supported.`);
  }
  const pcm = formatId === 'ima4' ? undefined : pcmLayout(description);
  if (formatId === 'ima4' ? channels > 2 : !pcm) {
    const printable = formatId.replace(/[^\x20-\x7e]/g, '?').trim();
    return fail('unsupported', `The Core Audio file holds a coding ('${printable}') that is not supported.`);
  }
  const there = pcm ? Math.floor(dataBytes / (pcm.bytesPerSample * channels)) : ima4Samples(channels, dataBytes);
  const valid = pcm ? 0 : (packetTable?.validFrames ?? 0);
  const totalSamples = valid > 0 ? Math.min(valid, there) : there;
  if (totalSamples === 0) return fail('no_samples', 'The Core Audio file has no samples in it.');
  const common = {
    format: 'caf',
    sampleRateHz,
    channels,
    totalSamples,
    durationSeconds: totalSamples / sampleRateHz,
    ...(warning === undefined ? {} : { warning }),
    dataOffset,
  } as const;
  const leftOut = effects.length > 0 ? { effects } : {};
  return pcm
    ? ok({ ...common, codec: 'pcm', ...pcm, ...leftOut })
    : ok({ ...common, codec: 'adpcm-ima-qt', dataBytes });
}

const IS_FLOAT = 1;
const IS_LITTLE_ENDIAN = 2;

function pcmLayout({ formatId, formatFlags, bytesPerPacket, channels }: CafDescription): PcmLayout | undefined {
  const bytesPerSample = bytesPerPacket / channels;
  if (formatId === 'alaw' || formatId === 'ulaw') {
    return bytesPerSample === 1
      ? { encoding: formatId === 'alaw' ? 'alaw' : 'mulaw', bytesPerSample, channels }
      : undefined;
  }
  const encoding = formatFlags & IS_FLOAT ? 'float' : 'signed';
  const sizes = encoding === 'float' ? [4, 8] : [1, 2, 3, 4];
  if (formatId !== 'lpcm' || !sizes.includes(bytesPerSample)) return undefined;
  return { encoding, bytesPerSample, channels, ...(formatFlags & IS_LITTLE_ENDIAN ? {} : { isBigEndian: true }) };
}
