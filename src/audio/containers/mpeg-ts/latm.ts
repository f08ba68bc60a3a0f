import { BitReader } from '../../bit-reader.ts';
import { AAC_OBJECT_USAC, XHE_AAC } from '../../packets/aac.ts';
import { ADTS_HEADER_BYTES, adtsHeader, MAX_ADTS_FRAME_BYTES } from '../adts/header.ts';

/**
 * AAC in LATM with LOAS headers (ISO/IEC 14496-3 §1.7.3), as broadcasts have it. Read is what their multiplexers write: one program of one layer,
 * one frame in each element. Frames leave here with ADTS headers, which say all that a decoder needs of such a configuration and let it change.
 */

/** 11 bits to find a frame by, 13 bits of its length. */
const LOAS_HEADER_BYTES = 3;

/** Length with its header of the LOAS frame at `at`, 0 where none begins. */
export function loasFrameBytes(bytes: Uint8Array, at: number): number {
  if (bytes[at] !== 0x56 || (bytes[at + 1] & 0xe0) !== 0xe0) return 0;
  const length = ((bytes[at + 1] & 0x1f) << 8) | bytes[at + 2];
  return length > 0 ? LOAS_HEADER_BYTES + length : 0;
}

/** What the ADTS header of a frame takes from the configuration. */
export interface LatmConfig {
  /** 1 to 4: Main, LC, SSR, LTP. */
  readonly objectType: number;
  readonly rateIndex: number;
  readonly channelConfiguration: number;
}

export type LatmFrame =
  | { readonly kind: 'frame'; readonly adts: Uint8Array; readonly config: LatmConfig; readonly hasConfig: boolean }
  /** What it holds that is not read, by name. */
  | { readonly kind: 'foreign'; readonly what: string }
  | { readonly kind: 'damaged' };

const DAMAGED: LatmFrame = { kind: 'damaged' };
const foreign = (what: string) => ({ kind: 'foreign', what: `AAC (LATM) ${what}` }) as const;
type Parsed<T> = T | { readonly kind: 'foreign'; readonly what: string };

/**
 * Takes one LOAS frame apart.
 *
 * @param known the configuration of the frames before, which a frame may go on with
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
    if (reader.bits(1) !== 0) return foreign('of an unknown version');
    latmValue(reader);
  }
  if (reader.bits(1) !== 1) return foreign('with streams of different timing');
  if (reader.bits(6) !== 0) return foreign('with several frames in one');
  if (reader.bits(4) !== 0) return foreign('with several programs');
  if (reader.bits(3) !== 0) return foreign('with several layers');
  const configEnd = version === 1 ? latmValue(reader) : 0;
  const configStart = reader.at;
  const config = audioSpecificConfig(reader);
  if ('kind' in config) return config;
  // With a length, there may be more behind what was understood.
  if (version === 1) reader.at = Math.max(reader.at, configStart + configEnd);
  if (reader.bits(3) !== 0) return foreign('with frames of constant length');
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

/** AudioSpecificConfig (§1.6.2.1) of what ADTS can say too. Bandwidth extension and parametric stereo the coded data announce themselves. */
function audioSpecificConfig(reader: BitReader): Parsed<LatmConfig> {
  let objectType = objectTypeOf(reader);
  const rateIndex = reader.bits(4);
  const channelConfiguration = reader.bits(4);
  if (objectType === SBR || objectType === PS) {
    if (reader.bits(4) === EXPLICIT_RATE) reader.bits(24);
    objectType = objectTypeOf(reader);
  }
  if (objectType === AAC_OBJECT_USAC) return { kind: 'foreign', what: XHE_AAC };
  if (objectType < 1 || objectType > MAX_ADTS_OBJECT) return foreign(`with the object type ${objectType}`);
  if (rateIndex > MAX_RATE_INDEX) return foreign('with an unusual sample rate');
  if (channelConfiguration < 1 || channelConfiguration > MAX_ADTS_CHANNELS) {
    return foreign('with an unusual order of channels');
  }
  if (reader.bits(1) === 1) return foreign('with frames of 960 samples');
  if (reader.bits(1) === 1) return foreign('with a core coder');
  if (reader.bits(1) === 1) return foreign('with an extension');
  return { objectType, rateIndex, channelConfiguration };
}

function objectTypeOf(reader: BitReader): number {
  const type = reader.bits(5);
  return type === 31 ? 32 + reader.bits(6) : type;
}
