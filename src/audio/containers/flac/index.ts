import { hasAscii } from '../../bytes.ts';
import type { Container } from '../../container.ts';
import { ok } from '../../result.ts';
import { goesOn, hasStreamBehind } from './behind.ts';
import { readMetadata } from './stream-info.ts';
import { flacPackets } from './walker.ts';

/** Native FLAC, fixed and variable block size. */
export const flac: Container = {
  format: 'flac',
  hasMagic: true,

  detect: (head) => hasAscii(head, 0, 'fLaC'),

  async open(reader, startByte, decoders) {
    const metadata = await readMetadata(reader, startByte);
    if (!metadata.ok) return metadata;
    const { info, raw, firstByte } = metadata.value;
    const { sampleRateHz, channels } = info;
    return ok({
      format: 'flac',
      where: 'The FLAC file',
      codec: 'flac',
      sampleRateHz,
      channels,
      openDecoder: () => decoders.open({ codec: 'flac', sampleRateHz, channels, extraData: raw }),
      walk: (faults, entry) => flacPackets(reader, info, firstByte, faults, entry),
      async warnings(faults, { position }) {
        const gapSeconds = (Number(faults.gapSamples ?? 0) / sampleRateHz).toFixed(1);
        const lastFrame = Number(faults.lastFrame ?? firstByte);
        return [
          ...(faults.isCut || position < info.totalSamples
            ? ['The FLAC file ends before it should; the part that is there was used.']
            : []),
          ...((await hasStreamBehind(reader, lastFrame, reader.sizeBytes)) ? [goesOn(position / sampleRateHz)] : []),
          ...(faults.gapSamples
            ? [`Damaged parts of the FLAC file, ${gapSeconds} s in all, were taken as silence.`]
            : []),
        ];
      },
    });
  },
};
