/**
 * Float samples may be anything. Recordings scaled to ±32768, or to ±2³¹, are read as they are, as everything downstream goes by ratios; but a few
 * samples far above all around them are damage that would drown some ten seconds.
 */

/** What no recording at ±1 exceeds, with room for what a float file may hold beyond full scale. A block with such a sample is looked at. */
const BEYOND_FULL_SCALE = 16;
/** What no scale exceeds: where it is exceeded, bytes are damaged, and nothing unusual next to it is believed. */
const ABSURD = 2 ** 32;
/** How far above its neighbours a sample may be. Twenty samples of 300 times the speech in half a minute add 14 points to the error. */
const RATIO = 100;
const RATIO_IN_DAMAGE = 10;
/** More than these in a block, or than so large a share of it, are no single samples but sound that begins after silence. */
const MAX_WILD = 64;
const MAX_WILD_SHARE = 1 / 16;
const PARTS = 64;
/** Of the peaks of the parts the one that stands for the block: a few wild samples do not reach it. */
const USUAL_RANK = 0.9;

/** Sets wild samples of a block to 0. What it does depends on the whole block, so that a recording must come in the same ones whoever reads it. */
export function silenceWild(block: Float32Array): void {
  const peak = peakOf(block);
  if (peak <= BEYOND_FULL_SCALE) return;
  const partLength = Math.ceil(block.length / PARTS);
  const peaks = Array.from({ length: Math.ceil(block.length / partLength) }, (_, part) =>
    peakOf(block.subarray(part * partLength, (part + 1) * partLength)),
  );
  const sound = peaks.filter((peakOfPart) => peakOfPart <= ABSURD).sort((a, b) => a - b);
  const usual = sound[Math.floor(USUAL_RANK * sound.length)] ?? 0;
  if (peak > ABSURD) {
    const limit = RATIO_IN_DAMAGE * usual;
    for (let part = 0; part < peaks.length; part++) {
      const isDamaged = peaks.slice(Math.max(0, part - 1), part + 2).some((near) => near > ABSURD);
      if (isDamaged) silenceAbove(block.subarray(part * partLength, (part + 1) * partLength), limit);
    }
  }
  const limit = Math.max(BEYOND_FULL_SCALE, RATIO * usual);
  let wild = 0;
  for (let i = 0; i < block.length; i++) if (Math.abs(block[i]) > limit) wild++;
  if (wild <= Math.min(MAX_WILD, MAX_WILD_SHARE * block.length)) silenceAbove(block, limit);
}

function peakOf(samples: Float32Array): number {
  let peak = 0;
  for (let i = 0; i < samples.length; i++) peak = Math.max(peak, Math.abs(samples[i]));
  return peak;
}

function silenceAbove(samples: Float32Array, limit: number): void {
  for (let i = 0; i < samples.length; i++) if (Math.abs(samples[i]) > limit) samples[i] = 0;
}
