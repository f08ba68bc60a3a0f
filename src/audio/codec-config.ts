import { type AudioResult, fail, ok } from './audio-ports.ts';
import { BitReader, fromAscii, hasAscii, u16be, u16le, u32be, u32le } from './bytes.ts';
import { MAX_BLOCK_SAMPLES, type TrackCodec } from './container.ts';
import { concatenated } from './memory.ts';

/** Content of the AudioSpecificConfig of an AAC track (ISO/IEC 14496-3 §1.6.2.1). */
interface AacConfig {
  readonly objectType: number;
  readonly sampleRateHz: number;
  /** 0 if a program config element states the channels. */
  readonly channels: number;
}

/** Sampling frequencies by their index in AudioSpecificConfig and ADTS (ISO/IEC 14496-3, table 1.18). */
export const MPEG4_RATES_HZ = [96000, 88200, 64000, 48000, 44100, 32000, 24000, 22050, 16000, 12000, 11025, 8000, 7350];
const CHANNELS = [0, 1, 2, 3, 4, 5, 6, 8, 0, 0, 0, 7, 8, 0, 8];

/** USAC, the core of xHE-AAC. */
export const AAC_OBJECT_USAC = 42;
/** Its name in messages. */
export const XHE_AAC = 'xHE-AAC (USAC)';

/** The configuration; undefined if invalid. */
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

/** A configuration of AAC-LC for a file without one; undefined for a rate or channels without a code. */
export function aacConfig(sampleRateHz: number, channels: number): Uint8Array | undefined {
  const [rateCode, channelCode] = [MPEG4_RATES_HZ.indexOf(sampleRateHz), CHANNELS.indexOf(channels)];
  if (rateCode < 0 || channelCode < 1) return undefined;
  return Uint8Array.of((2 << 3) | (rateCode >> 1), ((rateCode & 1) << 7) | (channelCode << 3));
}

/**
 * An AAC track from its AudioSpecificConfig.
 *
 * @param displayName 'The MP4 file', for messages
 * @param channels used if the configuration does not state them
 */
export function aacTrack(privateData: Uint8Array, channels: number, displayName: string): AudioResult<TrackCodec> {
  const config = parseAacConfig(privateData);
  if (!config) return fail('corrupt', `${displayName} has a damaged header of its AAC track.`);
  if (config.objectType === AAC_OBJECT_USAC) {
    return fail('unsupported', `${displayName} holds audio in ${XHE_AAC}, which is not supported.`);
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

/** An ALAC track from its configuration (ALACSpecificConfig, which other bytes may follow); undefined if invalid. */
export function alacTrack(bytes: Uint8Array): TrackCodec | undefined {
  const config = bytes.subarray(0, ALAC_CONFIG_BYTES);
  if (config.length < ALAC_CONFIG_BYTES) return undefined;
  const [frameSamples, bitsPerSample, channels] = [u32be(config, 0), config[5], config[9]];
  if (frameSamples < MIN_FRAME_SAMPLES || frameSamples > MAX_BLOCK_SAMPLES) return undefined;
  if (channels < 1 || channels > 8 || ![16, 20, 24, 32].includes(bitsPerSample)) return undefined;
  // The decoder needs the configuration in QuickTime's atom.
  const extraData = Uint8Array.from([...ATOM_HEAD, ...config]);
  return { codec: 'alac', sampleRateHz: u32be(config, 20), channels, extraData };
}

/** Opus counts at 48 kHz for any input rate. */
export const OPUS_RATE_HZ = 48000;

/** Longest packet: 120 ms. */
const MAX_PACKET_SAMPLES = 5760;

const SILK_SAMPLES = [480, 960, 1920, 2880];
const CELT_SAMPLES = [120, 240, 480, 960];

/** Samples of one packet at 48 kHz from its first two bytes (RFC 6716 §3.1); 0 if invalid. */
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
  /** Samples at 48 kHz to skip before the recording. */
  readonly preSkip: number;
}

/** The identification header (RFC 7845 §5.1); undefined if invalid. */
export function parseOpusHead(bytes: Uint8Array): OpusHead | undefined {
  if (bytes.length < 19 || bytes[8] >> 4 !== 0 || bytes[9] === 0) return undefined;
  return { channels: bytes[9], preSkip: u16le(bytes, 10) };
}

/** An OpusHead from the `dOps` box of MP4, which has the same fields in the other byte order. */
export function opusHeadFromBox(box: Uint8Array): Uint8Array {
  const head = new Uint8Array(8 + Math.max(11, box.length));
  head.set(fromAscii('OpusHead'));
  head.set(box, 8);
  head[8] = 1;
  head.set([box[3], box[2], box[7], box[6], box[5], box[4], box[9], box[8]], 10);
  return head;
}

/**
 * Opus in transport streams (wiki.xiph.org/OpusTS): each packet follows a control header with its length and the
 * samples to cut.
 */
interface OpusUnit {
  readonly headerBytes: number;
  /** Including the header; exceeds the available bytes if the header is truncated. */
  readonly bytes: number;
  /** Samples at 48 kHz to cut at the start. */
  readonly startTrim: number;
  /** Samples at 48 kHz to cut at the end. */
  readonly endTrim: number;
}

/** Longest packet: 48 frames of 1275 bytes and their lengths. */
const MAX_PACKET_BYTES = 62_000;

/** The unit at `at`; undefined if there is none. */
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

/** Streams, coupled streams and channel mapping by number of channels (RFC 7845 §5.1.1.2). */
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

/** The identification header, which a transport stream lacks, for 1 to 8 channels. */
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

/** Fields of the Vorbis headers that determine the length of a packet (Vorbis I specification, §4.2). */
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

/** The identification header; undefined if invalid. */
export function parseVorbisIdentification(packet: Uint8Array): VorbisIdentification | undefined {
  if (packet.length < 30 || packet[0] !== 1 || !hasAscii(packet, 1, 'vorbis')) return undefined;
  const shortSamples = 1 << (packet[28] & 15);
  const longSamples = 1 << (packet[28] >> 4);
  if (packet[11] === 0 || shortSamples < 64 || longSamples < shortSamples || longSamples > 8192) return undefined;
  return { channels: packet[11], sampleRateHz: u32le(packet, 12), shortSamples, longSamples };
}

/** An empty comment header: a decoder does not use comments, which may contain pictures. */
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

/** Splits private data in Xiph lacing; undefined unless they are three packets. */
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
 * Reads the modes backwards from the end of the setup header, so that codebooks and floors before them need no parser:
 * window and transform type are 0 in every mode, and the preceding count must agree.
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
  // `end` is the framing bit; the modes are directly before it.
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

/** Tags of MPEG-4 descriptors (ISO/IEC 14496-1 §7.2.6), and the bytes of the decoder configuration's fixed fields. */
const ES = 3;
const DECODER_CONFIG = 4;
const DECODER_SPECIFIC = 5;
const DECODER_CONFIG_BYTES = 13;

/** Content of an elementary stream descriptor: the coding (§7.2.6.6) and private data, which may be empty. */
interface DecoderConfig {
  readonly objectType: number;
  readonly privateData: Uint8Array;
}

/** Reads nested descriptors; undefined without a decoder configuration. */
export function decoderConfig(descriptor: Uint8Array): DecoderConfig | undefined {
  let objectType: number | undefined;
  let at = 0;
  // Each iteration skips a descriptor, or enters it if it contains the next.
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

/** Bytes of the fields before the decoder configuration: three, and more depending on their flags. */
function esFieldsBytes(descriptor: Uint8Array, at: number): number {
  const flags = descriptor[at + 2] ?? 0;
  const dependsOn = flags & 0x80 ? 2 : 0;
  const url = flags & 0x40 ? 1 + (descriptor[at + 3 + dependsOn] ?? 0) : 0;
  return 3 + dependsOn + url + (flags & 0x20 ? 2 : 0);
}
