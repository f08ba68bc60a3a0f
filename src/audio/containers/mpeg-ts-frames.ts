import type { CodecName } from '../audio-ports.ts';
import { BitReader, u16be } from '../bytes.ts';
import { AAC_OBJECT_USAC, OPUS_RATE_HZ, opusHeadOf, opusUnit, XHE_AAC } from '../codec-config.ts';
import type { TrackCodec } from '../container.ts';
import {
  ADTS_HEADER_BYTES,
  adtsFrameBytesAt,
  adtsHeader,
  adtsLockAt,
  MAX_ADTS_FRAME_BYTES,
  parseAdtsHeader,
  parseHeader,
} from './mpeg-frames.ts';
import type { Framing } from './mpeg-ts-tables.ts';

/**
 * AAC in LATM with LOAS headers (ISO/IEC 14496-3 §1.7.3), as in broadcasts. Supported is the form that their
 * multiplexers write: one program of one layer, one frame in each element. The frames get ADTS headers, which have all
 * parameters of such a configuration and allow changes of it.
 */

/** 11 bits of sync word, 13 bits of length. */
const LOAS_HEADER_BYTES = 3;

/** Length of the LOAS frame at `at` including its header; 0 if there is none. */
export function loasFrameBytes(bytes: Uint8Array, at: number): number {
  if (bytes[at] !== 0x56 || (bytes[at + 1] & 0xe0) !== 0xe0) return 0;
  const length = ((bytes[at + 1] & 0x1f) << 8) | bytes[at + 2];
  return length > 0 ? LOAS_HEADER_BYTES + length : 0;
}

/** Fields of the configuration for the ADTS header. */
export interface LatmConfig {
  /** 1 to 4: Main, LC, SSR, LTP. */
  readonly objectType: number;
  readonly rateIndex: number;
  readonly channelConfiguration: number;
}

type LatmFrame =
  | { readonly kind: 'frame'; readonly adts: Uint8Array; readonly config: LatmConfig; readonly hasConfig: boolean }
  /** Name of an unsupported coding. */
  | { readonly kind: 'unsupported'; readonly coding: string }
  | { readonly kind: 'damaged' };

const DAMAGED: LatmFrame = { kind: 'damaged' };
const unsupported = (feature: string) => ({ kind: 'unsupported', coding: `AAC (LATM) ${feature}` }) as const;
type Parsed<T> = T | { readonly kind: 'unsupported'; readonly coding: string };

/**
 * Parses one LOAS frame.
 *
 * @param known the configuration of the earlier frames, which applies if the frame has none
 */
export function parseLoasFrame(bytes: Uint8Array, known: LatmConfig | undefined): LatmFrame {
  const reader = new BitReader(bytes, LOAS_HEADER_BYTES);
  const hasConfig = reader.bits(1) === 0;
  const config = hasConfig ? streamMuxConfig(reader) : known;
  if (config === undefined || reader.isPast) return DAMAGED;
  if ('kind' in config) return config;
  let length = 0;
  for (let byte = 255; byte === 255 && !reader.isPast; ) {
    byte = reader.bits(8);
    length += byte;
  }
  const frameBytes = ADTS_HEADER_BYTES + length;
  if (length === 0 || reader.at + 8 * length > 8 * bytes.length || frameBytes > MAX_ADTS_FRAME_BYTES) return DAMAGED;
  const adts = new Uint8Array(frameBytes);
  adts.set(adtsHeader(config, frameBytes));
  for (let i = ADTS_HEADER_BYTES; i < frameBytes; i++) adts[i] = reader.bits(8);
  return { kind: 'frame', adts, config, hasConfig };
}

/** StreamMuxConfig (§1.7.3.2.3). */
function streamMuxConfig(reader: BitReader): Parsed<LatmConfig> {
  const version = reader.bits(1);
  if (version === 1) {
    if (reader.bits(1) !== 0) return unsupported('of an unknown version');
    latmValue(reader);
  }
  if (reader.bits(1) !== 1) return unsupported('with streams of different timing');
  if (reader.bits(6) !== 0) return unsupported('with several frames in one');
  if (reader.bits(4) !== 0) return unsupported('with several programs');
  if (reader.bits(3) !== 0) return unsupported('with several layers');
  const configEnd = version === 1 ? latmValue(reader) : 0;
  const configStart = reader.at;
  const config = audioSpecificConfig(reader);
  if ('kind' in config) return config;
  // A stated length may include unknown fields after the known ones.
  if (version === 1) reader.at = Math.max(reader.at, configStart + configEnd);
  if (reader.bits(3) !== 0) return unsupported('with frames of constant length');
  reader.bits(8); // fullness of the buffer
  if (reader.bits(1) === 1) {
    if (version === 1) latmValue(reader);
    else for (let more = 1; more === 1 && !reader.isPast; reader.bits(8)) more = reader.bits(1);
  }
  if (reader.bits(1) === 1) reader.bits(8); // checksum
  return config;
}

/** LatmGetValue: one to four bytes. */
function latmValue(reader: BitReader): number {
  const bytes = reader.bits(2) + 1;
  return reader.bits(8 * bytes);
}

const SBR = 5;
const PS = 29;
const EXPLICIT_RATE = 15;
const MAX_RATE_INDEX = 12;
const MAX_ADTS_OBJECT = 4;
const MAX_ADTS_CHANNELS = 7;

/**
 * AudioSpecificConfig (§1.6.2.1), limited to the codings that ADTS can express. The coded data announce bandwidth
 * extension and parametric stereo.
 */
function audioSpecificConfig(reader: BitReader): Parsed<LatmConfig> {
  let objectType = objectTypeOf(reader);
  const rateIndex = reader.bits(4);
  const channelConfiguration = reader.bits(4);
  if (objectType === SBR || objectType === PS) {
    if (reader.bits(4) === EXPLICIT_RATE) reader.bits(24);
    objectType = objectTypeOf(reader);
  }
  if (objectType === AAC_OBJECT_USAC) return { kind: 'unsupported', coding: XHE_AAC };
  if (objectType < 1 || objectType > MAX_ADTS_OBJECT) return unsupported(`with the object type ${objectType}`);
  if (rateIndex > MAX_RATE_INDEX) return unsupported('with an unusual sample rate');
  if (channelConfiguration < 1 || channelConfiguration > MAX_ADTS_CHANNELS) {
    return unsupported('with an unusual order of channels');
  }
  if (reader.bits(1) === 1) return unsupported('with frames of 960 samples');
  if (reader.bits(1) === 1) return unsupported('with a core coder');
  if (reader.bits(1) === 1) return unsupported('with an extension');
  return { objectType, rateIndex, channelConfiguration };
}

function objectTypeOf(reader: BitReader): number {
  const type = reader.bits(5);
  return type === 31 ? 32 + reader.bits(6) : type;
}

/** Facts from the header of one audio frame. */
interface AudioFrame {
  readonly bytes: number;
  /** Its coding, if the frame states it. */
  readonly track?: TrackCodec;
}

const NO_BYTES = new Uint8Array(0);

const frame = (codec: CodecName, bytes: number, sampleRateHz: number, channels: number): AudioFrame => ({
  bytes,
  track: { codec, sampleRateHz, channels, extraData: NO_BYTES },
});

/** Longest header that `audioFrame` reads. */
export const MAX_HEADER_BYTES = 7;

/** The frame at `at`; undefined if there is none. */
export function audioFrame(framing: Framing, bytes: Uint8Array, at: number): AudioFrame | undefined {
  if (at + MAX_HEADER_BYTES > bytes.length) return undefined;
  switch (framing) {
    case 'adts':
      return adtsFrame(bytes, at);
    case 'mpeg':
      return mpegFrame(bytes, at);
    case 'ac3':
    case 'eac3':
      return dolbyFrame(bytes, at);
    case 'latm': {
      const length = loasFrameBytes(bytes, at);
      return length > 0 ? { bytes: length } : undefined;
    }
    case 'opus':
      return opusUnit(bytes, at);
  }
}

/** AAC with ADTS headers. */
function adtsFrame(bytes: Uint8Array, at: number): AudioFrame | undefined {
  const length = adtsFrameBytesAt(bytes, at, adtsLockAt(bytes, at));
  if (length === 0) return undefined;
  const { coreRateHz, channels } = parseAdtsHeader(bytes, at);
  return frame('aac', length, coreRateHz, channels || 2);
}

function mpegFrame(bytes: Uint8Array, at: number): AudioFrame | undefined {
  const header = parseHeader(bytes, at);
  if (!header || header.layer === 1 || header.frameBytes === 0) return undefined;
  return frame(header.layer === 3 ? 'mp3' : 'mp2', header.frameBytes, header.sampleRateHz, header.channels);
}

const AC3_RATES_HZ = [48000, 44100, 32000];
const AC3_KBPS = [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 576, 640];
/** Up to this number the syntax is AC-3's, above it E-AC-3's. */
const MAX_AC3_ID = 10;

/** AC-3 and E-AC-3 (ATSC A/52 §5.3, annex E §2.2). The decoder determines the channels. */
function dolbyFrame(bytes: Uint8Array, at: number): AudioFrame | undefined {
  if (bytes[at] !== 0x0b || bytes[at + 1] !== 0x77) return undefined;
  const rateCode = bytes[at + 4] >> 6;
  if (bytes[at + 5] >> 3 > MAX_AC3_ID) {
    const length = 2 * ((u16be(bytes, at + 2) & 0x7ff) + 1);
    const sampleRateHz = AC3_RATES_HZ[rateCode] ?? (AC3_RATES_HZ[(bytes[at + 4] >> 4) & 3] ?? 0) / 2;
    return sampleRateHz > 0 && length > MAX_HEADER_BYTES ? frame('eac3', length, sampleRateHz, 2) : undefined;
  }
  const sizeCode = bytes[at + 4] & 63;
  const kbps = AC3_KBPS[sizeCode >> 1];
  const sampleRateHz = AC3_RATES_HZ[rateCode];
  if (kbps === undefined || sampleRateHz === undefined) return undefined;
  const words = Math.floor((kbps * 96_000) / sampleRateHz) + (rateCode === 1 ? sizeCode & 1 : 0);
  return frame('ac3', 2 * words, sampleRateHz, 2);
}

/** One frame of a stream for the decoder. */
export interface Unwrapped {
  readonly bytes: Uint8Array;
  readonly track: TrackCodec;
  /** Whether it can be decoded without earlier frames. */
  readonly isIndependent: boolean;
  /** Samples of Opus to cut at the start of the frame. */
  readonly startTrim?: number;
  /** Samples of Opus to cut at the end of the frame. */
  readonly endTrim?: number;
}

/** Removes the framing of the frames of one stream, in order. */
export interface Unwrapper {
  /** Undefined for damage, and for an unsupported coding, which `unsupported` then names. */
  unwrap(frame: Uint8Array): Unwrapped | undefined;
  readonly unsupported: string | undefined;
}

/** @param channels of Opus, from the tables of the stream */
export function unwrapperOf(framing: Framing, channels: number): Unwrapper {
  if (framing === 'latm') return new LatmUnwrapper();
  const opusHead = framing === 'opus' ? opusHeadOf(channels) : new Uint8Array(0);
  return {
    unsupported: undefined,
    unwrap(frame) {
      if (framing === 'opus') {
        const unit = opusUnit(frame, 0);
        if (!unit) return undefined;
        const { headerBytes, startTrim, endTrim } = unit;
        const track: TrackCodec = { codec: 'opus', sampleRateHz: OPUS_RATE_HZ, channels, extraData: opusHead };
        return { bytes: frame.subarray(headerBytes), track, isIndependent: true, startTrim, endTrim };
      }
      const parsed = audioFrame(framing, frame, 0);
      if (!parsed?.track) return undefined;
      return { bytes: frame, track: parsed.track, isIndependent: true };
    },
  };
}

class LatmUnwrapper implements Unwrapper {
  unsupported: string | undefined;
  #config: LatmConfig | undefined;

  unwrap(frame: Uint8Array): Unwrapped | undefined {
    const parsed = parseLoasFrame(frame, this.#config);
    if (parsed.kind === 'unsupported') {
      this.unsupported ??= parsed.coding;
      // Later frames with the same configuration are unsupported too.
      this.#config = undefined;
      return undefined;
    }
    const track = parsed.kind === 'frame' ? audioFrame('adts', parsed.adts, 0)?.track : undefined;
    if (parsed.kind !== 'frame' || !track) return undefined;
    this.#config = parsed.config;
    return { bytes: parsed.adts, track, isIndependent: parsed.hasConfig };
  }
}
