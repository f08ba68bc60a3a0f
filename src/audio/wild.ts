/**
 * Float samples may be anything. Recordings scaled to ±32768, or to ±2³¹, are read as they are, as everything downstream goes by ratios; but one
 * sample far above its neighbours is damage that would drown some ten seconds around it.
 */

/** What no sample at the usual scales exceeds, with room for clipping. A click of this size in speech at ±1 does no harm yet. */
const USUAL = 65536;
/** What no scale exceeds: where it is exceeded, bytes are damaged, and nothing unusual around is believed. */
const ABSURD = 2 ** 32;
/** How far above its neighbours a sample may be. */
const RATIO = 1000;
/** More than these in a block are no single samples but sound that begins after silence. */
const MAX_WILD = 64;
const PARTS = 64;
/** Of the peaks of the parts the one that stands for the block: a few wild samples do not reach it. */
const RANK = Math.floor(0.9 * PARTS);

/** Sets wild samples of a block to 0. What it does depends on the whole block, so that a recording must come in the same ones whoever reads it. */
export function silenceWild(block: Float32Array): void {
  let peak = 0;
  for (let i = 0; i < block.length; i++) peak = Math.max(peak, Math.abs(block[i]));
  if (peak <= USUAL) return;
  const isAbsurd = peak > ABSURD;
  const limit = isAbsurd ? USUAL : Math.max(USUAL, RATIO * usualPeak(block));
  let wild = 0;
  for (let i = 0; i < block.length; i++) if (Math.abs(block[i]) > limit) wild++;
  if (wild > MAX_WILD && !isAbsurd) return;
  for (let i = 0; i < block.length; i++) if (Math.abs(block[i]) > limit) block[i] = 0;
}

function usualPeak(block: Float32Array): number {
  const peaks = new Float32Array(PARTS);
  const perPart = Math.ceil(block.length / PARTS);
  for (let i = 0; i < block.length; i++) {
    const part = Math.floor(i / perPart);
    peaks[part] = Math.max(peaks[part], Math.abs(block[i]));
  }
  return peaks.sort()[RANK];
}
