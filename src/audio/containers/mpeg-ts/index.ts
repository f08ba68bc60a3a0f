import type { Container } from '../../container.ts';
import type { PacketIndex, RawPacket, TrackCodec } from '../../packets/packet.ts';
import { onePiece } from '../../packets/pieces.ts';
import { probeTrack } from '../../packets/probe-track.ts';
import { readPackets } from '../../packets/read.ts';
import { MAX_GAP_SECONDS } from '../../packets/scan.ts';
import { fail, ok } from '../../result.ts';
import { soundFrame } from './frames.ts';
import { firstTime, type TsWalk, walkStream } from './stream.ts';
import { readProgram } from './tables.ts';
import { findLayout } from './ts-packets.ts';

export interface MpegTsIndex extends PacketIndex {
  readonly format: 'mpeg-ts';
  readonly walk: TsWalk;
}

const WHERE = 'The MPEG transport stream';
const HEAD_BYTES = 1 << 14;

/** MPEG transport streams with AAC (ADTS), MPEG audio, AC-3 or E-AC-3; of a video its sound. */
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
    const walk: TsWalk = { stride, pid: stream.pid, framing: stream.framing };
    let first: RawPacket | undefined;
    for await (const run of walkStream(reader, walk, firstByte)) {
      first = run.packets[0];
      break;
    }
    const frame = first?.bytes && soundFrame(walk.framing, first.bytes, 0);
    if (!frame) return fail('no_samples', `${WHERE} has no samples in it.`);
    const track: TrackCodec = {
      codec: frame.codec,
      sampleRateHz: frame.sampleRateHz,
      channels: frame.channels,
      extraData: '',
    };
    const probed = await probeTrack(reader, decoders, {
      where: WHERE,
      track,
      walk: () => walkStream(reader, walk, firstByte),
      played(scan, rateHz) {
        const late = (scan.firstSeconds ?? 0) - seconds;
        const lead = late > 0 && late <= MAX_GAP_SECONDS ? Math.round(late * rateHz) : 0;
        return { pieces: onePiece(0, scan.endPosition, lead) };
      },
    });
    return probed.ok ? ok({ format: 'mpeg-ts', ...probed.value, walk }) : probed;
  },

  readMono: (reader, index, decoders, startSample) =>
    readPackets(reader, index, decoders, startSample, (entry) => walkStream(reader, index.walk, entry)),
};
