import { hasAscii } from '../../bytes.ts';
import type { Container } from '../../container.ts';
import { blockPackets, pcmBlocks } from '../../frames.ts';
import { ima4Blocks } from '../../ima4.ts';
import { anotherBehind } from '../../joined.ts';
import { pcmDecoder } from '../../packets/pcm-decoder.ts';
import { ok } from '../../result.ts';
import { readAiffHeader } from './header.ts';

/** AIFF and AIFF-C: uncompressed, A-law, µ-law, IMA ADPCM. */
export const aiff: Container = {
  format: 'aiff',
  hasMagic: true,

  detect: (head) => hasAscii(head, 0, 'FORM') && (hasAscii(head, 8, 'AIFF') || hasAscii(head, 8, 'AIFC')),

  async open(reader, startByte, decoders) {
    const header = await readAiffHeader(reader, startByte);
    if (!header.ok) return header;
    const { format, dataOffset, dataBytes, warning } = header.value;
    const { sampleRateHz } = format;
    const common = {
      format: 'aiff',
      where: 'The AIFF file',
      sampleRateHz,
      async warnings() {
        const behind = dataOffset + dataBytes + (dataBytes & 1);
        const isJoined = hasAscii(await reader.peek(behind, 4), 0, 'FORM');
        return [...(warning === undefined ? [] : [warning]), ...(isJoined ? [anotherBehind('The AIFF file')] : [])];
      },
    } as const;
    if (format.kind === 'pcm') {
      const blocks = pcmBlocks(format.pcm, dataOffset, dataBytes);
      return ok({
        ...common,
        codec: 'pcm',
        channels: format.pcm.channels,
        openDecoder: () => pcmDecoder(format.pcm, sampleRateHz, decoders),
        walk: (_, entry) => blockPackets(blocks, entry),
      });
    }
    const { channels } = format;
    const blocks = ima4Blocks(channels, dataOffset, dataBytes);
    return ok({
      ...common,
      codec: 'adpcm-ima-qt',
      channels,
      openDecoder: () => decoders.open({ codec: 'adpcm-ima-qt', sampleRateHz, channels }),
      walk: (_, entry) => blockPackets(blocks, entry),
    });
  },
};
