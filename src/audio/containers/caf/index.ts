import type { BlockReader } from '../../block-reader.ts';
import { hasAscii } from '../../bytes.ts';
import type { Container, Part } from '../../container.ts';
import { blockPackets, pcmBlocks } from '../../frames.ts';
import { ima4Blocks } from '../../ima4.ts';
import { anotherBehind } from '../../joined.ts';
import { shapeFault } from '../../limits.ts';
import { XHE_AAC } from '../../packets/aac.ts';
import { pcmDecoder } from '../../packets/pcm-decoder.ts';
import type { PcmLayout } from '../../pcm.ts';
import { onePiece } from '../../pieces.ts';
import { type AudioResult, fail, ok } from '../../result.ts';
import type { DecoderPort } from '../../types.ts';
import { type CafCodec, openCoded } from './coded.ts';
import { type CafDescription, type CafHeader, isCaf, readCafHeader } from './header.ts';

const CODED: Readonly<Record<string, CafCodec>> = {
  alac: 'alac',
  'aac ': 'aac',
  aach: 'aac',
  aacp: 'aac',
  opus: 'opus',
};

/** Core Audio Format: uncompressed, A-law, µ-law, IMA ADPCM, ALAC, AAC, Opus. */
export const caf: Container = {
  format: 'caf',
  hasMagic: true,

  detect: isCaf,

  async open(reader, startByte, decoders) {
    const header = await readCafHeader(reader, startByte);
    if (!header.ok) return header;
    const { description } = header.value;
    const fault = shapeFault('Core Audio', description.sampleRateHz, description.channels);
    if (fault) return fault;
    const codec = CODED[description.formatId];
    return codec ? openCoded(reader, header.value, codec, decoders) : openPlain(reader, header.value, decoders);
  },
};

/** Codings whose packets are all of one length. */
function openPlain(reader: BlockReader, header: CafHeader, decoders: DecoderPort): AudioResult<Part> {
  const { description, dataOffset, dataBytes, packetTable, effects, warning } = header;
  const { sampleRateHz, channels, formatId } = description;
  if (formatId === 'usac') {
    return fail('unsupported', `The Core Audio file holds audio in ${XHE_AAC}, which is not supported.`);
  }
  const layout = formatId === 'ima4' ? undefined : pcmLayout(description);
  if (formatId === 'ima4' ? channels > 2 : !layout) {
    const printable = formatId.replace(/[^\x20-\x7e]/g, '?').trim();
    return fail('unsupported', `The Core Audio file holds a coding ('${printable}') that is not supported.`);
  }
  const common = {
    format: 'caf',
    where: 'The Core Audio file',
    sampleRateHz,
    channels,
    async warnings() {
      const isJoined = hasAscii(await reader.peek(dataOffset + dataBytes, 4), 0, 'caff');
      return [...(warning === undefined ? [] : [warning]), ...(isJoined ? [anotherBehind('The Core Audio file')] : [])];
    },
  } as const;
  if (layout) {
    const pcm = effects.length > 0 ? { ...layout, effects } : layout;
    const blocks = pcmBlocks(pcm, dataOffset, dataBytes);
    return ok({
      ...common,
      codec: 'pcm',
      openDecoder: () => pcmDecoder(pcm, sampleRateHz, decoders),
      walk: (_, entry) => blockPackets(blocks, entry),
    });
  }
  const blocks = ima4Blocks(channels, dataOffset, dataBytes);
  const valid = packetTable?.validFrames ?? 0;
  return ok({
    ...common,
    codec: 'adpcm-ima-qt',
    openDecoder: () => decoders.open({ codec: 'adpcm-ima-qt', sampleRateHz, channels }),
    walk: (_, entry) => blockPackets(blocks, entry),
    heard: () => onePiece(0, valid > 0 ? valid : undefined),
  });
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
