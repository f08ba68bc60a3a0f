import { u16be, u32be } from '../bytes.ts';
import type { PacketCounter } from '../container.ts';
import { ADTS_HEADER_BYTES, adtsFrameBytesAt, adtsLockAt, parseAdtsHeader } from '../containers/adts/header.ts';
import { MAX_HEADER_BYTES, parseFrameHeader } from '../containers/flac/frame-header.ts';
import { parseStreamInfo } from '../containers/flac/stream-info.ts';
import { parseHeader } from '../containers/mp3/header.ts';
import { opusPacketSamples } from './opus.ts';
import { MAX_PACKET_BYTES, type TrackCodec } from './packet.ts';
import { parseVorbisModes } from './vorbis.ts';

/**
 * @param packetSamples what every packet decodes to, for codecs where that is so
 * @param isStart whether the first packet counted is the first of the track
 */
export function packetCounter(track: TrackCodec, packetSamples: number, isStart: boolean): PacketCounter {
  const from = (headBytes: number, count: PacketCounter['count']): PacketCounter => ({
    headBytes,
    canRestart: true,
    count,
  });
  switch (track.codec) {
    case 'opus':
      return from(2, opusPacketSamples);
    case 'vorbis':
      return vorbisCounter(track.extraData, isStart);
    case 'flac': {
      const info = parseStreamInfo(track.extraData);
      return from(MAX_HEADER_BYTES, (head) => parseFrameHeader(head, 0, info)?.blockSamples ?? info.maxBlockSamples);
    }
    case 'mp3':
    case 'mp2':
      return from(4, (head) => (head.length < 4 ? 0 : (parseHeader(head, 0)?.frameSamples ?? packetSamples)));
    case 'alac':
      return from(7, (head) => Math.min(alacFrameSamples(head) ?? packetSamples, packetSamples));
    case 'eac3':
      return from(MAX_PACKET_BYTES, eac3PacketSamples);
    case 'aac':
      return track.extraData.length === 0
        ? adtsCounter(track.sampleRateHz, packetSamples)
        : from(0, () => packetSamples);
    case 'pcm': {
      const frameBytes = (track.pcm?.bytesPerSample ?? 1) * track.channels;
      return from(0, (_, length) => Math.floor(length / frameBytes));
    }
    default:
      return from(0, () => packetSamples);
  }
}

/**
 * Frames with ADTS headers, whose rate may change: one lasts 1024 samples at the rate of its core, whatever the decoder
 * makes of it. Where that is no whole number of samples at the rate of the first frame, the rest goes over to the next,
 * and only where none is left a reader may begin.
 */
function adtsCounter(coreRateHz: number, packetSamples: number): PacketCounter {
  let rateHz = coreRateHz;
  /** In parts of `rateHz`. */
  let rest = 0;
  return {
    headBytes: ADTS_HEADER_BYTES,
    get canRestart() {
      return rest === 0;
    },
    count(head) {
      const isFrame = adtsFrameBytesAt(head, 0, adtsLockAt(head, 0)) > 0;
      const found = isFrame ? parseAdtsHeader(head, 0).coreRateHz : rateHz;
      if (found !== rateHz) rest = 0;
      rateHz = found;
      const parts = packetSamples * coreRateHz + rest;
      rest = parts % rateHz;
      return (parts - rest) / rateHz;
    },
  };
}

/**
 * Samples come out where two blocks overlap, so the first packet gives none, and a jump must know the block in front.
 */
function vorbisCounter(headers: Uint8Array, isStart: boolean): PacketCounter {
  const modes = parseVorbisModes(headers);
  let before = isStart ? 0 : (modes?.longSamples ?? 0);
  return {
    headBytes: 1,
    get canRestart() {
      return before === modes?.longSamples || before === 0;
    },
    count(head) {
      if (!modes || head.length === 0 || head[0] & 1) return 0;
      const isLong = modes.isLong[(head[0] >> 1) & ((1 << modes.modeBits) - 1)];
      if (isLong === undefined) return 0;
      const block = isLong ? modes.longSamples : modes.shortSamples;
      const samples = before === 0 ? 0 : (before + block) / 4;
      before = block;
      return samples;
    },
  };
}

/** The number of samples that an ALAC frame states when it is shorter than the others. */
function alacFrameSamples(head: Uint8Array): number | undefined {
  // 3 bits element, 4 bits instance, 12 bits unused, then 1 bit: a length of 32 bits follows after 3 more bits.
  if (head.length < 7 || (head[2] & 0x10) === 0) return undefined;
  return ((head[2] & 1) * 2 ** 31 + (u32be(head, 3) >>> 1)) >>> 0;
}

const EAC3_BLOCKS = [1, 2, 3, 6];

/**
 * All frames of a packet (ATSC A/52 annex E §2.3.1): short ones come several together, six blocks in all. Frames of
 * dependent streams (more channels of the same time) and of other programs add none.
 */
function eac3PacketSamples(packet: Uint8Array): number {
  let samples = 0;
  for (let at = 0; at + EAC3_HEAD_BYTES <= packet.length; ) {
    if (packet[at] !== 0x0b || packet[at + 1] !== 0x77) break;
    // AC-3 as the core of E-AC-3: what is behind it in the packet belongs to it.
    if (packet[at + 5] >> 3 <= 10) return samples + AC3_FRAME_SAMPLES;
    samples += eac3FrameSamples(packet, at);
    at += 2 * ((u16be(packet, at + 2) & 0x7ff) + 1);
  }
  return samples;
}

const EAC3_HEAD_BYTES = 6;
const AC3_FRAME_SAMPLES = 1536;
const EAC3_BLOCK_SAMPLES = 256;

function eac3FrameSamples(packet: Uint8Array, at: number): number {
  const [streamType, substream] = [packet[at + 2] >> 6, (packet[at + 2] >> 3) & 7];
  if (streamType === 1 || substream !== 0) return 0;
  return EAC3_BLOCK_SAMPLES * (packet[at + 4] >> 6 === 3 ? 6 : EAC3_BLOCKS[(packet[at + 4] >> 4) & 3]);
}
