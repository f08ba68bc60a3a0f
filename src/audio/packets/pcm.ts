import { type PcmLayout as InterleavedLayout, monoConverter } from '../pcm.ts';
import type { PacketDecoder } from '../types.ts';

/** How uncompressed samples lie in a packet. */
export type PcmLayout = Omit<InterleavedLayout, 'channels'>;

/** Uncompressed samples, in the shape of a decoder. */
export function pcmDecoder(layout: PcmLayout, channels: number, sampleRateHz: number): PacketDecoder {
  const toMono = monoConverter({ ...layout, channels });
  let out = new Float32Array(0);
  return {
    sampleRateHz,
    decode(packet) {
      const frames = Math.floor(packet.length / (layout.bytesPerSample * channels));
      if (out.length < frames) out = new Float32Array(frames);
      toMono(packet, frames, out);
      return out.subarray(0, frames);
    },
    close() {},
  };
}
