/** Levels are measured over tenths of a second. */
const TENTH_SAMPLES = 1600;

/** Level of silence. */
export const SILENCE_DB = -126;

/**
 * Level of the loudest tenth of a second, in whole dB of full scale; at least `SILENCE_DB`. The power of a tenth is the
 * variance of its samples, because an offset is no sound.
 *
 * @param samples 16 kHz mono
 */
export function loudestDb(samples: Float32Array): number {
  let loudest = 0;
  for (let from = 0; from < samples.length; from += TENTH_SAMPLES) {
    loudest = Math.max(loudest, powerOf(samples.subarray(from, from + TENTH_SAMPLES)));
  }
  return Math.max(SILENCE_DB, Math.round(10 * Math.log10(loudest)));
}

function powerOf(samples: Float32Array): number {
  let sum = 0;
  let squares = 0;
  for (const sample of samples) {
    sum += sample;
    squares += sample * sample;
  }
  return squares / samples.length - (sum / samples.length) ** 2;
}
