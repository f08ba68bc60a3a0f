import { type AudioResult, type DecoderPort, fail, ok, type PacketDecoder } from './audio-ports.ts';
import type { BlockReader } from './block-reader.ts';
import { u16be, u32be } from './bytes.ts';
import { opusPacketSamples, parseVorbisModes } from './codec-config.ts';
import {
  type Faults,
  isUsableRate,
  MAX_CHANNELS,
  MAX_PACKET_BYTES,
  MAX_PRIVATE_BYTES,
  type PacketCounter,
  type PacketWalk,
  type Part,
  packetBytes,
  type TrackCodec,
} from './container.ts';
import { MAX_HEADER_BYTES, parseFrameHeader, parseStreamInfo } from './containers/flac.ts';
import {
  ADTS_HEADER_BYTES,
  adtsFrameBytesAt,
  adtsLockAt,
  parseAdtsHeader,
  parseHeader,
} from './containers/mpeg-frames.ts';
import { pcmDecoder } from './pcm.ts';

/**
 * @param packetSamples samples of every packet, for codecs with a constant number
 * @param isStart whether the first counted packet is the first of the track
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
 * Frames with ADTS headers, whose rate may change: a frame lasts 1024 samples at its core rate. A fraction of a sample
 * at the rate of the first frame is carried over to the next frame; a reader may begin only where it is 0.
 */
function adtsCounter(coreRateHz: number, packetSamples: number): PacketCounter {
  let rateHz = coreRateHz;
  /** Carried fraction of a sample, in units of 1 / `rateHz`. */
  let rest = 0;
  return {
    headBytes: ADTS_HEADER_BYTES,
    get canRestart() {
      return rest === 0;
    },
    count(head) {
      const isFrame = adtsFrameBytesAt(head, 0, adtsLockAt(head, 0)) > 0;
      const frameRateHz = isFrame ? parseAdtsHeader(head, 0).coreRateHz : rateHz;
      if (frameRateHz !== rateHz) rest = 0;
      rateHz = frameRateHz;
      const parts = packetSamples * coreRateHz + rest;
      rest = parts % rateHz;
      return (parts - rest) / rateHz;
    },
  };
}

/**
 * The output is the overlap of two blocks: the first packet gives no samples, and a count from the middle needs the
 * size of the previous block.
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

/** The number of samples that an ALAC frame states if it is shorter than the others. */
function alacFrameSamples(head: Uint8Array): number | undefined {
  // 3 bits element, 4 bits instance, 12 bits unused, then 1 bit: a length of 32 bits follows after 3 more bits.
  if (head.length < 7 || (head[2] & 0x10) === 0) return undefined;
  return ((head[2] & 1) * 2 ** 31 + (u32be(head, 3) >>> 1)) >>> 0;
}

const EAC3_BLOCKS = [1, 2, 3, 6];

/**
 * Samples of all frames of a packet (ATSC A/52 annex E §2.3.1): a packet may have several short frames, six blocks in
 * total. Frames of dependent streams (further channels) and of other programs add none.
 */
function eac3PacketSamples(packet: Uint8Array): number {
  let samples = 0;
  for (let at = 0; at + EAC3_HEAD_BYTES <= packet.length; ) {
    if (packet[at] !== 0x0b || packet[at + 1] !== 0x77) break;
    // AC-3 as the core of E-AC-3: the rest of the packet belongs to the core.
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

/** One track of packets, from its container. */
interface Track {
  readonly format: string;
  /** 'The MP4 file', for messages. */
  readonly displayName: string;
  readonly track: TrackCodec;
  walk(faults: Faults, entry?: number): PacketWalk;
  /** Receives the faults of the walk to the first packets. */
  readonly trial?: Faults;
}

/** An Opus decoder with this number of channels takes up to 15 MB; the module has 32 MB for all decoders. */
const MAX_OPUS_CHANNELS = 32;

/** Checks a track and decodes its first packets to find its true rate. */
export async function openTrack(
  reader: BlockReader,
  decoders: DecoderPort,
  { format, displayName, track, walk, trial: faults = {} }: Track,
): Promise<AudioResult<Part>> {
  const { codec, channels } = track;
  if (channels < 1 || channels > MAX_CHANNELS) {
    return fail('unsupported', `${displayName} has ${channels} channels; 1 to ${MAX_CHANNELS} are supported.`);
  }
  if (codec === 'opus' && channels > MAX_OPUS_CHANNELS) {
    return fail(
      'unsupported',
      `${displayName} has ${channels} channels; Opus is supported with 1 to ${MAX_OPUS_CHANNELS}.`,
    );
  }
  if (!isUsableRate(track.sampleRateHz)) {
    return fail('unsupported', `${displayName} has a sample rate of ${track.sampleRateHz} Hz, which is not supported.`);
  }
  if (track.extraData.length > MAX_PRIVATE_BYTES) {
    return fail('corrupt', `${displayName} has a damaged header: its codec data is too long.`);
  }
  const trial = await tryDecoder(reader, track, decoders, walk(faults), displayName);
  if (!trial.ok) return trial;
  const { sampleRateHz, packetSamples } = trial.value;
  return ok({
    format,
    displayName,
    codec,
    sampleRateHz,
    channels,
    openDecoder: () => openDecoder(track, decoders),
    counter: (isStart) => packetCounter(track, packetSamples, isStart),
    walk,
  });
}

/** @throws if the decoder rejects the private data */
function openDecoder(
  { codec, pcm, sampleRateHz, channels, extraData }: TrackCodec,
  decoders: DecoderPort,
): PacketDecoder {
  if (pcm) return pcmDecoder(pcm, sampleRateHz, decoders);
  if (codec === 'pcm') throw new RangeError('samples without a layout');
  return decoders.open({ codec, sampleRateHz, channels, extraData });
}

/** Number of packets at the beginning that are tried. */
const FIRST_TRIES = 64;
/**
 * If all of them fail, the beginning may be damaged: this number is tried again each time the number of walked packets
 * has grown by an eighth.
 */
const FURTHER_TRIES = 6;
const PASSED_SHIFT = 3;
/** Number of packets that must decode. */
const MIN_DECODED = 3;

interface Trial {
  readonly sampleRateHz: number;
  readonly packetSamples: number;
}

/**
 * Decodes the first decodable packets: only the decoder knows the true rate of HE-AAC, and whether the private data are
 * valid.
 *
 * @param displayName 'The MP4 file', for the message
 */
async function tryDecoder(
  reader: BlockReader,
  track: TrackCodec,
  decoders: DecoderPort,
  walk: PacketWalk,
  displayName: string,
): Promise<AudioResult<Trial>> {
  const refused = fail('corrupt', `${displayName} holds audio (${track.codec.toUpperCase()}) that cannot be decoded.`);
  let decoder: PacketDecoder;
  try {
    decoder = openDecoder(track, decoders);
  } catch {
    return refused;
  }
  let packets = 0;
  let nextTry = 0;
  let triesLeft = FIRST_TRIES;
  let decoded = 0;
  let packetSamples = 0;
  try {
    search: for await (const run of walk) {
      for (const packet of run.packets) {
        if (packets++ < nextTry) continue;
        const samples = decoder.decode(await packetBytes(reader, packet, MAX_PACKET_BYTES)).length;
        if (samples > 0) decoded++;
        packetSamples = Math.max(packetSamples, samples);
        if (decoded >= MIN_DECODED) break search;
        if (--triesLeft > 0) continue;
        if (decoded > 0 && nextTry === 0) break search;
        // A single packet that decodes by chance is no audio.
        decoded = 0;
        nextTry = packets + (packets >> PASSED_SHIFT);
        triesLeft = FURTHER_TRIES;
      }
    }
    if (packets === 0) return fail('no_samples', `${displayName} has no samples in it.`);
    if (decoded === 0) return refused;
    const { sampleRateHz } = decoder;
    if (!isUsableRate(sampleRateHz)) {
      return fail('unsupported', `${displayName} has a sample rate of ${sampleRateHz} Hz, which is not supported.`);
    }
    return ok({ sampleRateHz, packetSamples });
  } finally {
    decoder.close();
  }
}

/** Number of tracks that are tried: for a track without packets the whole file is walked. */
const MAX_TRIED_TRACKS = 4;

/**
 * The first readable track. Films have their audio in several codings, some of which are not supported, and recorders
 * leave empty tracks. The fault of the first track becomes a warning, or the failure if no track is readable.
 */
export async function firstReadable<T>(
  tracks: readonly T[],
  open: (track: T) => Promise<AudioResult<Part>>,
): Promise<AudioResult<Part>> {
  const [first, ...others] = tracks.slice(0, MAX_TRIED_TRACKS);
  const opened = await open(first);
  if (opened.ok || (opened.error.kind !== 'unsupported' && opened.error.kind !== 'no_samples')) return opened;
  const { kind, message } = opened.error;
  for (const track of others) {
    const other = await open(track);
    if (!other.ok) continue;
    const substitution =
      kind === 'no_samples'
        ? 'An audio track of the file has no samples in it; another one was read instead.'
        : `${message} Another one of its audio tracks was read instead.`;
    const { warnings } = other.value;
    return ok({
      ...other.value,
      warnings: async (faults, end) => [substitution, ...((await warnings?.(faults, end)) ?? [])],
    });
  }
  return opened;
}
