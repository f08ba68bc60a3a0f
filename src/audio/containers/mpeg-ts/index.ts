import type { BlockReader } from '../../block-reader.ts';
import type { Container } from '../../container.ts';
import { MAX_GAP_SECONDS } from '../../packets/clock.ts';
import type { TrackCodec } from '../../packets/packet.ts';
import { openTrack } from '../../packets/track.ts';
import { onePiece } from '../../pieces.ts';
import { type AudioResult, fail, ok } from '../../result.ts';
import type { TsFaults } from './program-watch.ts';
import { firstTime, type TsWalk, walkStream } from './stream.ts';
import { readProgram } from './tables.ts';
import { findLayout } from './ts-packets.ts';
import { unwrapperOf } from './unwrap.ts';

const WHERE = 'The MPEG transport stream';
const HEAD_BYTES = 1 << 14;

/** MPEG transport streams with AAC (ADTS or LATM), MPEG audio, AC-3, E-AC-3 or Opus; of a video its sound. */
export const mpegTs: Container = {
  format: 'mpeg-ts',
  hasMagic: true,

  detect: (head) => findLayout(head) !== undefined,

  async open(reader, startByte, decoders) {
    const layout = findLayout(await reader.peek(startByte, HEAD_BYTES));
    if (!layout) return fail('corrupt', `${WHERE} is damaged at its beginning.`);
    const { stride } = layout;
    const firstByte = startByte + layout.firstByte;
    const program = await readProgram(reader, stride, firstByte);
    if (!program) return fail('corrupt', `${WHERE} has no table of its streams.`);
    const { streams } = program;
    const stream = streams.find(({ framing }) => framing);
    if (!stream?.framing) {
      const foreign = streams.find((other) => other.foreign)?.foreign;
      return foreign
        ? fail('unsupported', `${WHERE} holds audio in ${foreign}, which is not supported.`)
        : fail('no_samples', `${WHERE} has no audio track.`);
    }
    const played = streams.filter(({ framing, foreign, isPictures }) => framing || foreign || isPictures);
    const { seconds, scrambled } = await firstTime(reader, stride, firstByte, new Set(played.map(({ pid }) => pid)));
    if (scrambled.has(stream.pid)) return fail('unsupported', `${WHERE} is encrypted, so it cannot be read.`);
    const { pid, framing, channels = 0 } = stream;
    const walk: TsWalk = { stride, pid, framing, channels, program };
    const start = await readStart(reader, walk, firstByte);
    if (!start.ok) return start;
    const { track, startTrim } = start.value;
    const opened = await openTrack(reader, decoders, {
      format: 'mpeg-ts',
      where: WHERE,
      track,
      walk: (faults: TsFaults, entry = firstByte) => walkStream(reader, walk, entry, faults),
    });
    if (!opened.ok) return opened;
    return ok({
      ...opened.value,
      heard({ firstSeconds = 0 }) {
        const late = firstSeconds - seconds;
        const lead = late > 0 && late <= MAX_GAP_SECONDS ? Math.round(late * opened.value.sampleRateHz) : 0;
        return onePiece(startTrim, undefined, lead);
      },
      paddingOf: ({ endPadding }) => endPadding,
      warnings: (faults: TsFaults) => [
        ...(faults.isCut ? [`${WHERE} ends before it should; the part that is there was used.`] : []),
        ...(faults.hasOther
          ? ['Parts of the MPEG transport stream hold sound in another coding; they were left out.']
          : []),
      ],
    });
  },
};

/** What the sound is coded with, and how much of its beginning is not to be heard. */
async function readStart(
  reader: BlockReader,
  walk: TsWalk,
  firstByte: number,
): Promise<AudioResult<{ readonly track: TrackCodec; readonly startTrim: number }>> {
  const unwrapper = unwrapperOf(walk.framing, walk.channels);
  let track: TrackCodec | undefined;
  let startTrim = 0;
  search: for await (const { packets } of walkStream(reader, walk, firstByte, {}, unwrapper)) {
    for (const packet of packets) {
      track ??= packet.track;
      if (!packet.startTrim) break search;
      startTrim += packet.startTrim;
    }
  }
  if (track) return ok({ track, startTrim });
  return unwrapper.foreign === undefined
    ? fail('no_samples', `${WHERE} has no samples in it.`)
    : fail('unsupported', `${WHERE} holds audio in ${unwrapper.foreign}, which is not supported.`);
}
