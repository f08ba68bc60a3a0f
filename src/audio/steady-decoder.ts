import type { PacketDecoder } from './types.ts';

/** A decoder whose sound may change its rate in mid-stream: what has another rate than the recording is drawn to its length. */
export function steady(decoder: PacketDecoder, rateHz: number): PacketDecoder {
  return {
    decode(packet) {
      const block = decoder.decode(packet);
      if (block.length === 0 || decoder.sampleRateHz === rateHz) return block;
      return stretch(block, Math.round((block.length * rateHz) / decoder.sampleRateHz));
    },
    sampleRateHz: rateHz,
    close: () => decoder.close(),
  };
}

/** A stretch at another rate than the rest: drawn in straight lines, so that the clock holds. */
export function stretch(block: Float32Array, samples: number): Float32Array {
  return Float32Array.from({ length: samples }, (_, i) => {
    const at = (i * block.length) / samples;
    const left = Math.floor(at);
    return block[left] + (at - left) * ((block[left + 1] ?? block[left]) - block[left]);
  });
}
