import type { DecoderPort, PacketDecoder } from './audio-ports.ts';
import { u32be } from './bytes.ts';
import { grown } from './memory.ts';

/**
 * Low-frequency effects channels of uncompressed audio, numbered from 0. They are left out of the mono mix (ITU-R
 * BS.775); decoders do the same. Layouts that are not stated are never guessed. Mono and stereo have no such channel.
 */
export type EffectsChannels = readonly number[];

const NO_EFFECTS: EffectsChannels = [];

/** Bit of the low-frequency channel in the masks of WAV, which Core Audio shares. */
const EFFECTS_BIT = 8;

/** From the channel mask of WAVE_FORMAT_EXTENSIBLE: the channels are in the order of its bits. */
export function effectsOfMask(mask: number, channels: number): EffectsChannels {
  if (channels <= 2 || !(mask & EFFECTS_BIT)) return NO_EFFECTS;
  const earlier = [1, 2, 4].filter((bit) => mask & bit).length;
  return earlier < channels ? [earlier] : NO_EFFECTS;
}

/**
 * Index of the low-frequency effects channel by Core Audio layout tag (CoreAudioBaseTypes.h), without the channel count
 * of the tag.
 */
const LAYOUTS: ReadonlyMap<number, number> = new Map([
  ...[133, 134, 135].map((tag) => [tag, 2] as const), // L R LFE …
  ...[121, 125, 126, 128, 130, 136, 137, 152, 153, 168].map((tag) => [tag, 3] as const), // L R C LFE … and similar
  ...[138, 154, 169].map((tag) => [tag, 4] as const), // DVD 18, AC-3 3/1, DTS 4.1
  ...[122, 123, 124, 129].map((tag) => [tag, 5] as const), // MPEG 5.1 B, C, D, Emagic 7.1
  ...[157, 158, 159, 160, 161, 162, 163, 164, 165, 166, 167].map((tag) => [tag, 5] as const), // E-AC-3 6.1 and 7.1
  [142, 6], // AAC 6.1
  [127, 7], // MPEG 7.1 B
]);
const BY_DESCRIPTIONS = 0;
const BY_BITMAP = 0x10000;
const HEAD_BYTES = 12;
const DESCRIPTION_BYTES = 20;
const EFFECTS_LABELS = [4, 37];

/**
 * From an AudioChannelLayout of Core Audio, as in CAF, AIFF and QuickTime.
 *
 * @param bytes tag, bitmap and the number of descriptions, then the descriptions; may be truncated
 */
export function effectsOfLayout(bytes: Uint8Array, channels: number): EffectsChannels {
  if (channels <= 2 || bytes.length < HEAD_BYTES) return NO_EFFECTS;
  const tag = u32be(bytes, 0);
  if (tag === BY_BITMAP) return effectsOfMask(u32be(bytes, 4), channels);
  if (tag !== BY_DESCRIPTIONS) {
    const at = (tag & 0xffff) === channels ? LAYOUTS.get(tag >>> 16) : undefined;
    return at === undefined ? NO_EFFECTS : [at];
  }
  const described = Math.min(u32be(bytes, 8), channels, Math.floor((bytes.length - HEAD_BYTES) / DESCRIPTION_BYTES));
  const found: number[] = [];
  for (let i = 0; i < described; i++) {
    if (EFFECTS_LABELS.includes(u32be(bytes, HEAD_BYTES + i * DESCRIPTION_BYTES))) found.push(i);
  }
  return found.length < channels ? found : NO_EFFECTS;
}

const HAS_CHANNELS = 1;
/** Loudspeaker positions (ISO/IEC 23091-3): the two of low frequencies, and one with three more bytes. */
const EFFECTS_POSITIONS = [3, 26];
const EXPLICIT_POSITION = 126;

/** From the body of the box `chnl` of MP4 (ISO/IEC 14496-12 §12.2.4), if it lists the channels. */
export function effectsOfPositions(body: Uint8Array, channels: number): EffectsChannels {
  const isLong = body[0] === 1;
  const structure = isLong ? body[4] >> 4 : body[4];
  let at = isLong ? 6 : 5;
  // A layout number is ignored: writers disagree about the order of its channels.
  const isListed = structure & HAS_CHANNELS && body[at++] === 0;
  if (channels <= 2 || !isListed || (isLong && body[at++] !== channels)) return NO_EFFECTS;
  const found: number[] = [];
  for (let channel = 0; channel < channels && at < body.length; channel++) {
    if (EFFECTS_POSITIONS.includes(body[at])) found.push(channel);
    at += body[at] === EXPLICIT_POSITION ? 4 : 1;
  }
  return found.length < channels ? found : NO_EFFECTS;
}

/** Bytes of a layout with a description for the maximum number of channels. */
export const MAX_LAYOUT_BYTES = HEAD_BYTES + 64 * DESCRIPTION_BYTES;

/** Blocks of floats with a higher peak are searched for outliers: recordings at ±1 stay below. */
const BEYOND_FULL_SCALE = 16;
/** No scale exceeds this: the bytes around such a sample are damaged. */
const MAX_SCALE = 2 ** 32;
/**
 * Largest ratio of a sample to the usual peak. Twenty samples of 300 times the speech level in half a minute add 14
 * points to the error.
 */
const MAX_PEAK_RATIO = 100;
/** Largest ratio next to damage. */
const MAX_PEAK_RATIO_IN_DAMAGE = 10;
/** A larger number in a block, or a larger share of it, is audio that begins after silence. */
const MAX_OUTLIERS = 64;
const MAX_OUTLIER_SHARE = 1 / 16;
/** A block's usual peak is this quantile of the peaks of its sections, which a few outliers do not affect. */
const USUAL_PEAK_QUANTILE = 0.9;
const SECTIONS_OF_BLOCK = 64;

/**
 * Sets damaged samples that are far above all others to 0. Recordings scaled to ±32768 or ±2³¹ are not changed, because
 * all consumers use ratios. The result depends on the block, so all readers must cut the same blocks.
 */
function silenceOutliers(block: Float32Array): void {
  const peak = peakOf(block);
  if (peak <= BEYOND_FULL_SCALE) return;
  const sectionLength = Math.ceil(block.length / SECTIONS_OF_BLOCK);
  const peaks = Array.from({ length: Math.ceil(block.length / sectionLength) }, (_, section) =>
    peakOf(block.subarray(section * sectionLength, (section + 1) * sectionLength)),
  );
  const undamaged = peaks.filter((sectionPeak) => sectionPeak <= MAX_SCALE).sort((a, b) => a - b);
  const usual = undamaged[Math.floor(USUAL_PEAK_QUANTILE * undamaged.length)] ?? 0;
  if (peak > MAX_SCALE) {
    const limit = MAX_PEAK_RATIO_IN_DAMAGE * usual;
    for (let section = 0; section < peaks.length; section++) {
      const isDamaged = peaks.slice(Math.max(0, section - 1), section + 2).some((near) => near > MAX_SCALE);
      if (isDamaged) silenceAbove(block.subarray(section * sectionLength, (section + 1) * sectionLength), limit);
    }
  }
  const limit = Math.max(BEYOND_FULL_SCALE, MAX_PEAK_RATIO * usual);
  let outliers = 0;
  for (let i = 0; i < block.length; i++) if (Math.abs(block[i]) > limit) outliers++;
  if (outliers <= Math.min(MAX_OUTLIERS, MAX_OUTLIER_SHARE * block.length)) silenceAbove(block, limit);
}

function peakOf(samples: Float32Array): number {
  let peak = 0;
  for (let i = 0; i < samples.length; i++) peak = Math.max(peak, Math.abs(samples[i]));
  return peak;
}

function silenceAbove(samples: Float32Array, limit: number): void {
  for (let i = 0; i < samples.length; i++) if (Math.abs(samples[i]) > limit) samples[i] = 0;
}

/** Coding of one uncompressed or companded sample. */
type PcmEncoding = 'unsigned' | 'signed' | 'float' | 'alaw' | 'mulaw';

/** Interleaved samples of constant size. */
export interface PcmLayout {
  readonly encoding: PcmEncoding;
  /** 1 to 4; 4 or 8 for floats. */
  readonly bytesPerSample: number;
  readonly isBigEndian?: boolean;
  readonly channels: number;
  /** Channels that are left out of the mono mix; absent if there are none. */
  readonly effects?: EffectsChannels;
}

/**
 * Converts `frames` interleaved sample frames to mono (full scale ±1) into `out`. Blocks of floats must always be cut
 * at the same frames (`silenceOutliers`).
 */
type MonoConverter = (bytes: Uint8Array, frames: number, out: Float32Array) => void;

type Load = (view: DataView, at: number) => number;

/** ITU-T G.711 A-law, one byte to −1…1. */
function expandALaw(byte: number): number {
  const value = byte ^ 0x55;
  const exponent = (value >> 4) & 7;
  const mantissa = value & 15;
  const magnitude = exponent === 0 ? (mantissa << 4) + 8 : ((mantissa << 4) + 0x108) << (exponent - 1);
  return (value & 0x80 ? magnitude : -magnitude) / 32768;
}

/** ITU-T G.711 µ-law, one byte to −1…1. */
export function expandMuLaw(byte: number): number {
  const value = ~byte & 0xff;
  const magnitude = ((((value & 15) << 3) + 0x84) << ((value >> 4) & 7)) - 0x84;
  return (value & 0x80 ? -magnitude : magnitude) / 32768;
}

const table = (expand: (byte: number) => number) => Float32Array.from({ length: 256 }, (_, byte) => expand(byte));

function loader({ encoding, bytesPerSample, isBigEndian }: PcmLayout): Load {
  const isLittle = isBigEndian !== true;
  switch (encoding) {
    case 'alaw':
    case 'mulaw': {
      const values = table(encoding === 'alaw' ? expandALaw : expandMuLaw);
      return (view, at) => values[view.getUint8(at)];
    }
    case 'unsigned':
      return (view, at) => (view.getUint8(at) - 128) / 128;
    case 'float':
      return bytesPerSample === 8
        ? (view, at) => finite(Math.fround(view.getFloat64(at, isLittle)))
        : (view, at) => finite(view.getFloat32(at, isLittle));
    case 'signed':
      if (bytesPerSample === 1) return (view, at) => view.getInt8(at) / 128;
      if (bytesPerSample === 2) return (view, at) => view.getInt16(at, isLittle) / 32768;
      if (bytesPerSample === 3) {
        return isLittle
          ? (view, at) => ((view.getInt8(at + 2) << 16) | view.getUint16(at, true)) / 8388608
          : (view, at) => ((view.getInt16(at, false) << 8) | view.getUint8(at + 2)) / 8388608;
      }
      return (view, at) => view.getInt32(at, isLittle) / 2147483648;
  }
}

/** Replaces NaN and infinities of damaged float files, which would propagate to all later samples. */
const finite = (value: number): number => (Number.isFinite(value) ? value : 0);

/**
 * Converts interleaved samples to mono: to the mean of the channels without low-frequency effects, or to one channel.
 *
 * @param channel from 0; silence if there are fewer channels
 */
function monoConverter(layout: PcmLayout, channel?: number): MonoConverter {
  const convert = meanConverter(layout, channel);
  if (layout.encoding !== 'float') return convert;
  return (bytes, frames, out) => {
    convert(bytes, frames, out);
    silenceOutliers(out.subarray(0, frames));
  };
}

function meanConverter(layout: PcmLayout, channel: number | undefined): MonoConverter {
  const { bytesPerSample, channels, effects = [] } = layout;
  const load = loader(layout);
  const frameBytes = bytesPerSample * channels;
  const isMixed = (c: number) => (channel === undefined ? !effects.includes(c) : c === channel);
  const mixed = Array.from({ length: channels }, (_, c) => c).filter(isMixed);
  if (mixed.length === 0) return (_bytes, frames, out) => void out.fill(0, 0, frames);
  const offsets = mixed.map((c) => c * bytesPerSample);
  return (bytes, frames, out) => {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    let at = 0;
    if (channels === 1) {
      for (let i = 0; i < frames; i++, at += bytesPerSample) out[i] = load(view, at);
      return;
    }
    for (let i = 0; i < frames; i++, at += frameBytes) {
      let sum = 0;
      for (let c = 0; c < offsets.length; c++) sum += load(view, at + offsets[c]);
      out[i] = sum / offsets.length;
    }
  };
}

/** A decoder of uncompressed samples. */
export function pcmDecoder(layout: PcmLayout, sampleRateHz: number, { channel }: DecoderPort): PacketDecoder {
  const toMono = monoConverter(layout, channel);
  const frameBytes = layout.bytesPerSample * layout.channels;
  let out: Float32Array = new Float32Array(0);
  return {
    sampleRateHz,
    decode(packet) {
      const frames = Math.floor(packet.length / frameBytes);
      out = grown(out, 0, frames);
      toMono(packet, frames, out);
      return out.subarray(0, frames);
    },
    close() {},
  };
}
