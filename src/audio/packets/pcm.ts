import { monoConverter, type PcmEncoding } from '../containers/wav/pcm.ts';
import type { PacketDecoder } from '../types.ts';

/** How uncompressed samples lie in a packet. */
export interface PcmLayout {
  readonly encoding: PcmEncoding;
  readonly bytesPerSample: number;
  readonly isBigEndian: boolean;
}

/** Uncompressed samples, in the shape of a decoder. */
export function pcmDecoder(layout: PcmLayout, channels: number, sampleRateHz: number): PacketDecoder {
  const { encoding, bytesPerSample, isBigEndian } = layout;
  const toMono = monoConverter(encoding, bytesPerSample, channels);
  let out = new Float32Array(0);
  return {
    sampleRateHz,
    decode(packet) {
      const frames = Math.floor(packet.length / (bytesPerSample * channels));
      if (out.length < frames) out = new Float32Array(frames);
      toMono(isBigEndian && bytesPerSample > 1 ? swapped(packet, bytesPerSample) : packet, frames, out);
      return out.subarray(0, frames);
    },
    close() {},
  };
}

function swapped(bytes: Uint8Array, width: number): Uint8Array {
  const out = new Uint8Array(bytes.length);
  for (let at = 0; at + width <= bytes.length; at += width) {
    for (let i = 0; i < width; i++) out[at + i] = bytes[at + width - 1 - i];
  }
  return out;
}
