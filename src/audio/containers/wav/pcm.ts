/** How one sample of a WAV file is coded. */
export type PcmEncoding = 'unsigned' | 'signed' | 'float' | 'alaw' | 'mulaw';

/** Converts `frames` interleaved sample frames to mono (mean of the channels, full scale ±1) into `out`. */
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
function expandMuLaw(byte: number): number {
  const value = ~byte & 0xff;
  const magnitude = ((((value & 15) << 3) + 0x84) << ((value >> 4) & 7)) - 0x84;
  return (value & 0x80 ? -magnitude : magnitude) / 32768;
}

const table = (expand: (byte: number) => number) => Float32Array.from({ length: 256 }, (_, byte) => expand(byte));

function loader(encoding: PcmEncoding, bytesPerSample: number): Load {
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
        ? (view, at) => finite(Math.fround(view.getFloat64(at, true)))
        : (view, at) => finite(view.getFloat32(at, true));
    case 'signed':
      if (bytesPerSample === 2) return (view, at) => view.getInt16(at, true) / 32768;
      if (bytesPerSample === 3) {
        return (view, at) => ((view.getInt8(at + 2) << 16) | view.getUint16(at, true)) / 8388608;
      }
      return (view, at) => view.getInt32(at, true) / 2147483648;
  }
}

/** NaN and infinities of damaged float files would spoil everything behind them. */
const finite = (value: number): number => (Number.isFinite(value) ? value : 0);

/** @param bytesPerSample size of one sample's container: 1 to 4, or 4 and 8 for floats */
export function monoConverter(encoding: PcmEncoding, bytesPerSample: number, channels: number): MonoConverter {
  const load = loader(encoding, bytesPerSample);
  const frameBytes = bytesPerSample * channels;
  return (bytes, frames, out) => {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    let at = 0;
    if (channels === 1) {
      for (let i = 0; i < frames; i++, at += bytesPerSample) out[i] = load(view, at);
      return;
    }
    for (let i = 0; i < frames; i++, at += frameBytes) {
      let sum = 0;
      for (let c = 0, p = at; c < channels; c++, p += bytesPerSample) sum += load(view, p);
      out[i] = sum / channels;
    }
  };
}
