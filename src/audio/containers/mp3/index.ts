import type { BlockReader } from '../../block-reader.ts';
import type { Container, Part, PartEnd, Piece } from '../../container.ts';
import { framePackets, frameWarnings } from '../../frames.ts';
import { onePiece } from '../../pieces.ts';
import { type AudioResult, fail, ok } from '../../result.ts';
import type { DecoderPort } from '../../types.ts';
import { mpegSyntax } from './header.ts';
import { DECODER_DELAY_SAMPLES, paddingOf, readInfoTag } from './info-tag.ts';
import { findMpegSync, goesOnWarning, type MpegFamily, SYNC_BYTES } from './sync.ts';

const REJECTED: Readonly<Record<Exclude<MpegFamily, 'mp3' | 'layer2'>, string>> = {
  'free-format': 'The file is an MP3 file in free format, which is not supported.',
  layer1: 'The file is an MPEG layer I file (MP1), which is not supported.',
  adts: 'The file holds AAC where MP3 should be, which is not supported.',
};

/** MPEG-1, 2 and 2.5 layer III, and layer II, constant and variable bit rate. */
export const mp3: Container = {
  format: 'mp3',
  hasMagic: false,
  detect: (head) => findMpegSync(head, head.length < SYNC_BYTES) !== undefined,
  open: (reader, startByte, decoders) => openMpeg(reader, startByte, reader.sizeBytes, decoders),
};

/** Opens the MPEG audio that fills `[startByte, endByte)`. */
export async function openMpeg(
  reader: BlockReader,
  startByte: number,
  endByte: number,
  decoders: DecoderPort,
): Promise<AudioResult<Part>> {
  const wanted = Math.min(SYNC_BYTES, endByte - startByte);
  const head = (await reader.peek(startByte, wanted)).slice(0, wanted);
  const sync = findMpegSync(head, startByte + head.length >= endByte);
  if (!sync) return fail('corrupt', 'The MP3 file has no whole frame in it.');
  const { family, header } = sync;
  if ((family !== 'mp3' && family !== 'layer2') || !header) {
    return fail('unsupported', REJECTED[family as keyof typeof REJECTED]);
  }
  const [name, codec] = family === 'mp3' ? (['MP3', 'mp3'] as const) : (['MP2', 'mp2'] as const);
  const tag = codec === 'mp3' ? readInfoTag(head.subarray(sync.at, sync.at + header.frameBytes), header) : undefined;
  const firstByte = startByte + sync.at + (tag ? header.frameBytes : 0);
  const { sampleRateHz, channels, frameSamples } = header;
  return ok({
    format: 'mp3',
    where: `The ${name} file`,
    codec,
    sampleRateHz,
    channels,
    openDecoder: () => decoders.open({ codec, sampleRateHz, channels }),
    walk: (faults, entry = firstByte) =>
      framePackets(reader, mpegSyntax(header.lock), { startByte: entry, endByte }, frameSamples, faults),
    heard: (): readonly Piece[] => onePiece(tag?.hasDelay ? tag.delaySamples + DECODER_DELAY_SAMPLES : 0),
    paddingOf: ({ position }) => paddingOf(tag, position, frameSamples),
    async warnings(faults, end: PartEnd) {
      // Where bytes were left out, the frames that the tag knows of were in them.
      const hasTooFew = !faults.skippedBytes && tag?.frames !== undefined && tag.frames > end.packets + 1;
      const framesEnd = Number(faults.framesEnd ?? firstByte);
      const seconds = (end.position - paddingOf(tag, end.position, frameSamples)) / sampleRateHz;
      const rest = await goesOnWarning(name, reader, { startByte: framesEnd, endByte }, seconds);
      return [...frameWarnings(name, faults, faults.isCut === true || hasTooFew), ...rest];
    },
  });
}
