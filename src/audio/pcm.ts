import type { EffectsChannels } from './channel-layout.ts';
import { silenceWild } from './wild.ts';

/** How one uncompressed or companded sample is coded. */
export type PcmEncoding = 'unsigned' | 'signed' | 'float' | 'alaw' | 'mulaw';

/** Interleaved samples of one size: a sample's place is plain arithmetic. */
export interface PcmLayout {
  readonly encoding: PcmEncoding;
  /** 1 to 4, or 4 and 8 for floats. */
  readonly bytesPerSample: number;
  readonly isBigEndian?: boolean;
  readonly channels: number;
  /** Channels that are left out of the mono mix; absent where there are none. */
  readonly effects?: EffectsChannels;
}

/**
 * Converts `frames` interleaved sample frames to mono (full scale ±1) into `out`. Of floats always the same frames
 * together (`wild.ts`).
 */
export type MonoConverter = (bytes: Uint8Array, frames: number, out: Float32Array) => void;

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

/** NaN and infinities of damaged float files would spoil everything after them. */
const finite = (value: number): number => (Number.isFinite(value) ? value : 0);

/**
 * Converts interleaved samples to mono: to the mean of the channels without low-frequency effects, or to one channel.
 *
 * @param channel from 0; silence if there are fewer channels
 */
export function monoConverter(layout: PcmLayout, channel?: number): MonoConverter {
  const convert = meanConverter(layout, channel);
  if (layout.encoding !== 'float') return convert;
  return (bytes, frames, out) => {
    convert(bytes, frames, out);
    silenceWild(out.subarray(0, frames));
  };
}

function meanConverter(layout: PcmLayout, channel: number | undefined): MonoConverter {
  const { bytesPerSample, channels, effects = [] } = layout;
  const load = loader(layout);
  const frameBytes = bytesPerSample * channels;
  const isHeard = (c: number) => (channel === undefined ? !effects.includes(c) : c === channel);
  const heard = Array.from({ length: channels }, (_, c) => c).filter(isHeard);
  if (heard.length === 0) return (_bytes, frames, out) => void out.fill(0, 0, frames);
  const offsets = heard.map((c) => c * bytesPerSample);
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
