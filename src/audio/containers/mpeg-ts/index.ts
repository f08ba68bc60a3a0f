import type { BlockReader } from '../../block-reader.ts';
import type { Container } from '../../container.ts';
import type { PacketIndex, TrackCodec } from '../../packets/packet.ts';
import { onePiece } from '../../packets/pieces.ts';
import { probeTrack } from '../../packets/probe-track.ts';
import { readPackets } from '../../packets/read.ts';
import { MAX_GAP_SECONDS } from '../../packets/scan.ts';
import { type AudioResult, fail, ok } from '../../result.ts';
import { firstTime, type TsWalk, walkStream } from './stream.ts';
import { readProgram } from './tables.ts';
import { findLayout } from './ts-packets.ts';
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
    const streams = await readProgram(reader, stride, firstByte);
    if (!streams) return fail('corrupt', `${WHERE} has no table of its streams.`);
    const stream = streams.find(({ framing }) => framing);
    if (!stream?.framing) {
      const foreign = streams.find((other) => other.foreign)?.foreign;
      return foreign
        ? fail('unsupported', `${WHERE} holds audio in ${foreign}, which is not supported.`)
        : fail('no_samples', `${WHERE} has no audio track.`);
    }
    const { seconds, scrambled } = await firstTime(reader, stride, firstByte, new Set(streams.map(({ pid }) => pid)));
    if (scrambled.has(stream.pid)) return fail('unsupported', `${WHERE} is encrypted, so it cannot be read.`);
    const walk: TsWalk = { stride, pid: stream.pid, framing: stream.framing, channels: stream.channels ?? 0 };
    const start = await readStart(reader, walk, firstByte);
    if (!start.ok) return start;
    const { track, startTrim } = start.value;
    const probed = await probeTrack(reader, decoders, {
      where: WHERE,
      track,
      walk: () => walkStream(reader, walk, firstByte),
      played(scan, rateHz) {
        const late = (scan.firstSeconds ?? 0) - seconds;
        const lead = late > 0 && late <= MAX_GAP_SECONDS ? Math.round(late * rateHz) : 0;
        return { pieces: onePiece(startTrim, scan.endPosition - scan.endPadding, lead) };
      },
    });
    return probed.ok ? ok({ format: 'mpeg-ts', ...probed.value, walk }) : probed;
  },

  readMono: (reader, index, decoders, startSample) =>
    readPackets(reader, index, decoders, startSample, (entry) => walkStream(reader, index.walk, entry)),
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
  search: for await (const { packets } of walkStream(reader, walk, firstByte, unwrapper)) {
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
