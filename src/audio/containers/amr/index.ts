import { hasAscii } from '../../bytes.ts';
import type { Container } from '../../container.ts';
import { framePackets, frameWarnings } from '../../frames.ts';
import { fail, ok } from '../../result.ts';
import { AMR_FAMILIES, amrSyntax } from './frames.ts';

/**
 * AMR and AMR-WB files of one channel. Frames without speech (comfort noise, lost, nothing sent) are silence of the
 * same length: the decoder makes no noise, and the clock continues.
 */
export const amr: Container = {
  format: 'amr',
  hasMagic: true,

  detect: (head) => hasAscii(head, 0, '#!AMR'),

  async open(reader, startByte, decoders) {
    const head = await reader.peek(startByte, 16);
    const family = AMR_FAMILIES.find(({ magic }) => hasAscii(head, 0, magic));
    if (!family) return fail('unsupported', 'The file is an AMR file of several channels, which is not supported.');
    const { codec, sampleRateHz, frameSamples, name, magic } = family;
    const firstByte = startByte + magic.length;
    return ok({
      format: 'amr',
      where: `The ${name} file`,
      codec,
      sampleRateHz,
      channels: 1,
      openDecoder: () => decoders.open({ codec, sampleRateHz, channels: 1 }),
      walk: (faults, entry = firstByte) =>
        framePackets(reader, amrSyntax(family), { startByte: entry, endByte: reader.sizeBytes }, frameSamples, faults),
      warnings: (faults) => frameWarnings(name, faults),
    });
  },
};
