import { type AudioResult, fail, ok } from './audio-ports.ts';
import { BitReader, fromAscii, hasAscii, u16be, u16le, u32be, u32le } from './bytes.ts';
import { MAX_BLOCK_SAMPLES, type TrackCodec } from './container.ts';
import { concatenated } from './memory.ts';

/** What the AudioSpecificConfig of an AAC track says (ISO/IEC 14496-3 §1.6.2.1). */
interface AacConfig {
  readonly objectType: number;
  readonly sampleRateHz: number;
  /** 0 where a program config element says. */
  readonly channels: number;
}

/** Sampling frequencies by their index in AudioSpecificConfig and ADTS (ISO/IEC 14496-3, table 1.18). */
export const MPEG4_RATES_HZ = [96000, 88200, 64000, 48000, 44100, 32000, 24000, 22050, 16000, 12000, 11025, 8000, 7350];
const CHANNELS = [0, 1, 2, 3, 4, 5, 6, 8, 0, 0, 0, 7, 8, 0, 8];

/** USAC, the core of xHE-AAC. */
export const AAC_OBJECT_USAC = 42;
/** Its name in messages. */
export const XHE_AAC = 'xHE-AAC (USAC)';

/** The configuration, or undefined where its bytes are no such thing. */
function parseAacConfig(bytes: Uint8Array): AacConfig | undefined {
  if (bytes.length < 2) return undefined;
  const reader = new BitReader(bytes);
  let objectType = reader.bits(5);
  if (objectType === 31) objectType = 32 + reader.bits(6);
  const rateIndex = reader.bits(4);
  const sampleRateHz = rateIndex === 15 ? reader.bits(24) : MPEG4_RATES_HZ[rateIndex];
  const channels = CHANNELS[reader.bits(4)];
  if (objectType === 0 || sampleRateHz === undefined || channels === undefined) return undefined;
  return { objectType, sampleRateHz, channels };
}

/** A configuration for AAC-LC where a file has none; undefined for a rate or channels that have no code. */
export function aacConfig(sampleRateHz: number, channels: number): Uint8Array | undefined {
  const [rateCode, channelCode] = [MPEG4_RATES_HZ.indexOf(sampleRateHz), CHANNELS.indexOf(channels)];
  if (rateCode < 0 || channelCode < 1) return undefined;
  return Uint8Array.of((2 << 3) | (rateCode >> 1), ((rateCode & 1) << 7) | (channelCode << 3));
}

/**
 * An AAC track by its AudioSpecificConfig.
 *
 * @param where 'The MP4 file', for messages
 * @param channels where the configuration leaves them to the coded data
 */
export function aacTrack(privateData: Uint8Array, channels: number, where: string): AudioResult<TrackCodec> {
  const config = parseAacConfig(privateData);
  if (!config) return fail('corrupt', `${where} has a damaged header of its AAC track.`);
  if (config.objectType === AAC_OBJECT_USAC) {
    return fail('unsupported', `${where} holds audio in ${XHE_AAC}, which is not supported.`);
  }
  return ok({
    codec: 'aac',
    sampleRateHz: config.sampleRateHz,
    channels: config.channels || channels || 1,
    extraData: privateData.slice(),
  });
}

const ALAC_CONFIG_BYTES = 24;
const MIN_FRAME_SAMPLES = 64;
const ATOM_HEAD = [0, 0, 0, 12 + ALAC_CONFIG_BYTES, 0x61, 0x6c, 0x61, 0x63, 0, 0, 0, 0];

/**
 * An ALAC track by its configuration (ALACSpecificConfig, after which other bytes may stand); undefined for bytes that
 * are none.
 */
export function alacTrack(bytes: Uint8Array): TrackCodec | undefined {
  const config = bytes.subarray(0, ALAC_CONFIG_BYTES);
  if (config.length < ALAC_CONFIG_BYTES) return undefined;
  const [frameSamples, bitsPerSample, channels] = [u32be(config, 0), config[5], config[9]];
  if (frameSamples < MIN_FRAME_SAMPLES || frameSamples > MAX_BLOCK_SAMPLES) return undefined;
  if (channels < 1 || channels > 8 || ![16, 20, 24, 32].includes(bitsPerSample)) return undefined;
  // The decoder wants it in the atom that QuickTime puts around it.
  const extraData = Uint8Array.from([...ATOM_HEAD, ...config]);
  return { codec: 'alac', sampleRateHz: u32be(config, 20), channels, extraData };
}

/** Opus counts at 48 kHz, whatever went in. */
export const OPUS_RATE_HZ = 48000;

/** Longest packet: 120 ms. */
const MAX_PACKET_SAMPLES = 5760;

const SILK_SAMPLES = [480, 960, 1920, 2880];
const CELT_SAMPLES = [120, 240, 480, 960];

/** Samples of one packet at 48 kHz by its first two bytes (RFC 6716 §3.1); 0 for one that cannot be. */
export function opusPacketSamples(head: Uint8Array): number {
  if (head.length === 0) return 0;
  const config = head[0] >> 3;
  const frame =
    config < 12 ? SILK_SAMPLES[config & 3] : config < 16 ? (config & 1 ? 960 : 480) : CELT_SAMPLES[config & 3];
  const code = head[0] & 3;
  const frames = code === 0 ? 1 : code < 3 ? 2 : head.length > 1 ? head[1] & 63 : 0;
  return frame * frames <= MAX_PACKET_SAMPLES ? frame * frames : 0;
}

interface OpusHead {
  readonly channels: number;
  /** Samples at 48 kHz in front of the recording. */
  readonly preSkip: number;
}

/** The identification header (RFC 7845 §5.1); undefined when it is none. */
export function parseOpusHead(bytes: Uint8Array): OpusHead | undefined {
  if (bytes.length < 19 || bytes[8] >> 4 !== 0 || bytes[9] === 0) return undefined;
  return { channels: bytes[9], preSkip: u16le(bytes, 10) };
}

/** An OpusHead from the `dOps` box of MP4, which holds the same in the other byte order. */
export function opusHeadFromBox(box: Uint8Array): Uint8Array {
  const head = new Uint8Array(8 + Math.max(11, box.length));
  head.set(fromAscii('OpusHead'));
  head.set(box, 8);
  head[8] = 1;
  head.set([box[3], box[2], box[7], box[6], box[5], box[4], box[9], box[8]], 10);
  return head;
}

/**
 * Opus in transport streams (wiki.xiph.org/OpusTS): each packet behind a control header with its length, and samples to
 * leave out.
 */
interface OpusUnit {
  readonly headerBytes: number;
  /** With the header; more than there is where the header itself is not all there. */
  readonly bytes: number;
  /** Samples at 48 kHz. */
  readonly startTrim: number;
  readonly endTrim: number;
}

/** Longest packet: 48 frames of 1275 bytes and their lengths. */
const MAX_PACKET_BYTES = 62_000;

/** The unit at `at`, or undefined where none begins. */
export function opusUnit(bytes: Uint8Array, at: number): OpusUnit | undefined {
  if (bytes[at] !== 0x7f || (bytes[at + 1] & 0xe0) !== 0xe0) return undefined;
  const flags = bytes[at + 1];
  let next = at + 2;
  let length = 0;
  for (let byte = 255; byte === 255 && next < bytes.length; length += byte) byte = bytes[next++];
  const field = (flag: number) => {
    if (!(flags & flag)) return 0;
    next += 2;
    return next <= bytes.length ? u16be(bytes, next - 2) & 0x1fff : 0;
  };
  const startTrim = field(0x10);
  const endTrim = field(0x08);
  if (flags & 0x04) next += 1 + (bytes[next] ?? 0);
  if (length === 0 || length > MAX_PACKET_BYTES) return undefined;
  const headerBytes = next - at;
  return { headerBytes, bytes: headerBytes + length, startTrim, endTrim };
}

/**
 * Streams and those of two channels, by the number of channels, and which of their channels each is (RFC 7845
 * §5.1.1.2).
 */
const MAPPINGS: readonly (readonly [streams: number, coupled: number, mapping: readonly number[]])[] = [
  [1, 0, [0]],
  [1, 1, [0, 1]],
  [2, 1, [0, 2, 1]],
  [2, 2, [0, 1, 2, 3]],
  [3, 2, [0, 4, 1, 2, 3]],
  [4, 2, [0, 4, 1, 2, 3, 5]],
  [4, 3, [0, 4, 1, 2, 3, 5, 6]],
  [5, 3, [0, 6, 1, 2, 3, 4, 5, 7]],
];
export const MAX_OPUS_CHANNELS = MAPPINGS.length;

/** The identification header that a transport stream does without, for 1 to 8 channels. */
export function opusHeadOf(channels: number): Uint8Array {
  const [streams, coupled, mapping] = MAPPINGS[channels - 1];
  const family = channels > 2 ? 1 : 0;
  const head = new Uint8Array(19 + (family === 1 ? 2 + channels : 0));
  head.set(fromAscii('OpusHead'));
  head.set([1, channels], 8);
  new DataView(head.buffer).setUint32(12, OPUS_RATE_HZ, true);
  head[18] = family;
  if (family === 1) head.set([streams, coupled, ...mapping], 19);
  return head;
}

/** What of the Vorbis headers the length of a packet depends on (Vorbis I specification, §4.2). */
interface VorbisModes {
  readonly shortSamples: number;
  readonly longSamples: number;
  readonly modeBits: number;
  readonly isLong: readonly boolean[];
}

interface VorbisIdentification {
  readonly channels: number;
  readonly sampleRateHz: number;
  readonly shortSamples: number;
  readonly longSamples: number;
}

/** The identification header; undefined when it is none. */
export function parseVorbisIdentification(packet: Uint8Array): VorbisIdentification | undefined {
  if (packet.length < 30 || packet[0] !== 1 || !hasAscii(packet, 1, 'vorbis')) return undefined;
  const shortSamples = 1 << (packet[28] & 15);
  const longSamples = 1 << (packet[28] >> 4);
  if (packet[11] === 0 || shortSamples < 64 || longSamples < shortSamples || longSamples > 8192) return undefined;
  return { channels: packet[11], sampleRateHz: u32le(packet, 12), shortSamples, longSamples };
}

/** Comments are of no use to a decoder and may hold pictures: none, no vendor. */
const NO_COMMENTS = Uint8Array.from([3, ...fromAscii('vorbis'), 0, 0, 0, 0, 0, 0, 0, 0, 1]);

/** Identification and setup header as private data: three packets in Xiph lacing. */
export function vorbisPrivateData(identification: Uint8Array, setup: Uint8Array): Uint8Array {
  const lengths = [identification.length, NO_COMMENTS.length].flatMap(xiphLength);
  return concatenated(Uint8Array, [[2, ...lengths], identification, NO_COMMENTS, setup]);
}

const xiphLength = (length: number): number[] => [
  ...new Array<number>(Math.floor(length / 255)).fill(255),
  length % 255,
];

/** Takes private data in Xiph lacing apart; undefined when it is not three packets. */
export function splitXiphHeaders(bytes: Uint8Array): Uint8Array[] | undefined {
  if (bytes[0] !== 2) return undefined;
  const lengths = [0, 0];
  let at = 1;
  for (let i = 0; i < 2; i++) {
    for (;;) {
      if (at >= bytes.length) return undefined;
      lengths[i] += bytes[at];
      if (bytes[at++] !== 255) break;
    }
  }
  const [first, second] = [at + lengths[0], at + lengths[0] + lengths[1]];
  if (second > bytes.length) return undefined;
  return [bytes.subarray(at, first), bytes.subarray(first, second), bytes.subarray(second)];
}

const MAX_MODES = 64;
/** One mode: 1 bit block size, 16 bits window type, 16 bits transform type, 8 bits mapping. */
const MODE_BITS = 41;

/**
 * Reads the modes from the end of the setup header backwards, where they stand, so that nothing in front of them
 * (codebooks, floors) must be understood: window and transform type are 0 in every mode, and the count in front must
 * fit.
 */
export function parseVorbisModes(privateData: Uint8Array): VorbisModes | undefined {
  const packets = splitXiphHeaders(privateData);
  const identification = packets && parseVorbisIdentification(packets[0]);
  if (!packets || !identification) return undefined;
  const setup = packets[2];
  const bit = (at: number) => (setup[at >> 3] >> (at & 7)) & 1;
  const bits = (at: number, count: number) => {
    let value = 0;
    for (let i = count - 1; i >= 0; i--) value = value * 2 + bit(at + i);
    return value;
  };
  let end = setup.length * 8 - 1;
  while (end > 0 && bit(end) === 0) end--;
  // `end` is the framing bit; the modes lie right in front of it.
  const isLong: boolean[] = [];
  let found: readonly boolean[] | undefined;
  for (let count = 1; count <= MAX_MODES; count++) {
    const at = end - count * MODE_BITS;
    if (at < 6 + 7 * 8 || bits(at + 1, 32) !== 0 || bits(at + 33, 8) > 63) break;
    isLong.unshift(bit(at) === 1);
    if (bits(at - 6, 6) + 1 === count) found = [...isLong];
  }
  if (!found) return undefined;
  const { shortSamples, longSamples } = identification;
  return { shortSamples, longSamples, modeBits: Math.ceil(Math.log2(found.length)), isLong: found };
}

/**
 * Tags of MPEG-4 descriptors (ISO/IEC 14496-1 §7.2.6) and the fixed fields in front of what is nested in the second.
 */
const ES = 3;
const DECODER_CONFIG = 4;
const DECODER_SPECIFIC = 5;
const DECODER_CONFIG_BYTES = 13;

/**
 * What an elementary stream descriptor says: which coding (§7.2.6.6), and the decoder's private data, empty where there
 * is none.
 */
interface DecoderConfig {
  readonly objectType: number;
  readonly privateData: Uint8Array;
}

/** Reads the descriptors inside one another; undefined where there is no decoder configuration among them. */
export function decoderConfig(descriptor: Uint8Array): DecoderConfig | undefined {
  let objectType: number | undefined;
  let at = 0;
  // Each turn goes on behind the header, or steps into the descriptor that holds the next.
  while (at + 2 <= descriptor.length) {
    const tag = descriptor[at++];
    let length = 0;
    for (let count = 0; count < 4 && at < descriptor.length; count++) {
      const byte = descriptor[at++];
      length = length * 128 + (byte & 0x7f);
      if (!(byte & 0x80)) break;
    }
    if (tag === ES) at += esFieldsBytes(descriptor, at);
    else if (tag === DECODER_CONFIG) {
      objectType = descriptor[at];
      at += DECODER_CONFIG_BYTES;
    } else if (tag === DECODER_SPECIFIC && objectType !== undefined) {
      return { objectType, privateData: descriptor.slice(at, at + length) };
    } else at += length;
  }
  return objectType === undefined ? undefined : { objectType, privateData: new Uint8Array(0) };
}

/** Fields in front of the decoder configuration: three bytes, and more by their flags. */
function esFieldsBytes(descriptor: Uint8Array, at: number): number {
  const flags = descriptor[at + 2] ?? 0;
  const dependsOn = flags & 0x80 ? 2 : 0;
  const url = flags & 0x40 ? 1 + (descriptor[at + 3 + dependsOn] ?? 0) : 0;
  return 3 + dependsOn + url + (flags & 0x20 ? 2 : 0);
}
