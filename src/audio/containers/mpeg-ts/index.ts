import type { BlockReader } from '../../block-reader.ts';
import type { Container } from '../../container.ts';
import { MAX_GAP_SECONDS } from '../../packets/clock.ts';
import type { PacketIndex, TrackCodec } from '../../packets/packet.ts';
import { onePiece } from '../../packets/pieces.ts';
import { probeTrack } from '../../packets/probe-track.ts';
import { readPackets } from '../../packets/read.ts';
import { type AudioResult, fail, ok } from '../../result.ts';
import { ProgramWatch } from './program-watch.ts';
import { firstTime, type TsWalk, walkStream } from './stream.ts';
import { readProgram } from './tables.ts';
import { findLayout, type PacketsEnd } from './ts-packets.ts';
import { unwrapperOf } from './unwrap.ts';

export interface MpegTsIndex extends PacketIndex {
  readonly format: 'mpeg-ts';
  readonly walk: TsWalk;
}

const WHERE = 'The MPEG transport stream';
const HEAD_BYTES = 1 << 14;

/** MPEG transport streams with AAC (ADTS or LATM), MPEG audio, AC-3, E-AC-3 or Opus; of a video its sound. */
export const mpegTs: Container<MpegTsIndex> = {
  format: 'mpeg-ts',
  hasMagic: true,

  detect: (head) => findLayout(head) !== undefined,

  async probe(reader, startByte, decoders) {
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
    const walk: TsWalk = { stride, pid, framing, channels, moves: [] };
    let watch = new ProgramWatch(program, walk);
    const end: PacketsEnd = {};
    const start = await readStart(reader, walk, firstByte, watch);
    if (!start.ok) return start;
    const { track, startTrim } = start.value;
    const probed = await probeTrack(reader, decoders, {
      where: WHERE,
      track,
      walk() {
        watch = new ProgramWatch(program, walk);
        return walkStream(reader, walk, firstByte, undefined, watch, end);
      },
      played(scan, rateHz) {
        const late = (scan.firstSeconds ?? 0) - seconds;
        const lead = late > 0 && late <= MAX_GAP_SECONDS ? Math.round(late * rateHz) : 0;
        return { pieces: onePiece(startTrim, scan.endPosition - scan.endPadding, lead) };
      },
      isCut: () => end.isCut === true,
      warnings: () =>
        watch.hasOther ? ['Parts of the MPEG transport stream hold sound in another coding; they were left out.'] : [],
    });
    return probed.ok ? ok({ format: 'mpeg-ts', ...probed.value, walk: { ...walk, moves: watch.moves } }) : probed;
  },

  readMono: (reader, index, decoders, startSample) =>
    readPackets(reader, index, decoders, startSample, (entry) => walkStream(reader, index.walk, entry)),
};

/** What the sound is coded with, and how much of its beginning is not to be heard. */
async function readStart(
  reader: BlockReader,
  walk: TsWalk,
  firstByte: number,
  watch: ProgramWatch,
): Promise<AudioResult<{ readonly track: TrackCodec; readonly startTrim: number }>> {
  const unwrapper = unwrapperOf(walk.framing, walk.channels);
  let track: TrackCodec | undefined;
  let startTrim = 0;
  search: for await (const { packets } of walkStream(reader, walk, firstByte, unwrapper, watch)) {
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
