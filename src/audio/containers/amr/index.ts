import type { BlockReader } from '../../block-reader.ts';
import { hasAscii } from '../../bytes.ts';
import type { Container, IndexBase } from '../../container.ts';
import { decodeFrames, scanFrames, scannedFrames, scanWarning } from '../../frame-stream.ts';
import { fail, ok } from '../../result.ts';
import type { SeekTable } from '../../seek-table.ts';
import { tailTagsStart } from '../../tags.ts';
import type { DecoderPort } from '../../types.ts';
import { AMR_FAMILIES, type AmrCodec, amrSyntax, familyOf } from './frames.ts';

export interface AmrIndex extends IndexBase {
  readonly format: 'amr';
  readonly codec: AmrCodec;
  readonly frameSamples: number;
  readonly endByte: number;
  readonly seek: SeekTable;
}

/** One second: the pitch predictor feeds on its own output. */
const WARM_UP_FRAMES = 50;

/**
 * AMR and AMR-WB files of one channel. Frames without speech (comfort noise, lost, nothing sent) are silence of the same length: the
 * decoder makes no noise, and the clock goes on.
 */
export const amr: Container<AmrIndex> = {
  format: 'amr',
  hasMagic: true,

  detect: (head) => hasAscii(head, 0, '#!AMR'),

  async probe(reader, startByte) {
    const head = await reader.peek(startByte, 16);
    const family = AMR_FAMILIES.find(({ magic }) => hasAscii(head, 0, magic));
    if (!family) return fail('unsupported', 'The file is an AMR file of several channels, which is not supported.');
    const range = { startByte: startByte + family.magic.length, endByte: await tailTagsStart(reader, startByte) };
    const scan = await scanFrames(reader, amrSyntax(family), range, family);
    if (scan.frames === 0) return fail('no_samples', `The ${family.name} file has no samples in it.`);
    const { codec, sampleRateHz, frameSamples } = family;
    const totalSamples = scan.frames * frameSamples;
    const warning = scanWarning(family.name, scan);
    return ok({
      format: 'amr',
      codec,
      sampleRateHz,
      channels: 1,
      totalSamples,
      durationSeconds: totalSamples / sampleRateHz,
      ...(warning === undefined ? {} : { warning }),
      frameSamples,
      endByte: range.endByte,
      seek: scan.seek,
    });
  },

  readMono(reader: BlockReader, index: AmrIndex, decoders: DecoderPort, startSample: number) {
    const { codec, sampleRateHz } = index;
    const timing = { ...index, skipSamples: 0, warmUpFrames: WARM_UP_FRAMES };
    const frames = scannedFrames(reader, amrSyntax(familyOf(codec)), index);
    return decodeFrames(timing, frames, () => decoders.open({ codec, sampleRateHz, channels: 1 }), startSample);
  },
};
