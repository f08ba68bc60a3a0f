import { monoConverter, type PcmLayout } from '../pcm.ts';
import type { DecoderPort, PacketDecoder } from '../types.ts';

/** Uncompressed samples, in the shape of a decoder. */
export function pcmDecoder(layout: PcmLayout, sampleRateHz: number, { channel }: DecoderPort): PacketDecoder {
  const toMono = monoConverter(layout, channel);
  const frameBytes = layout.bytesPerSample * layout.channels;
  let out = new Float32Array(0);
  return {
    sampleRateHz,
    decode(packet) {
      const frames = Math.floor(packet.length / frameBytes);
      if (out.length < frames) out = new Float32Array(frames);
      toMono(packet, frames, out);
      return out.subarray(0, frames);
    },
    close() {},
  };
}
