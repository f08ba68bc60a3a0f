import { describe, expect, it } from 'vitest';
import { LEVEL_HOP_SAMPLES, measureLevels, quietPlacesOf } from './levels.ts';

const PARAMETERS = { loudShare: 0.9, belowDb: 26, reachSeconds: 0.2 };

/** A constant of so many dB in each tenth of a second. */
function steps(...decibels: number[]): Float32Array {
  const samples = new Float32Array(decibels.length * LEVEL_HOP_SAMPLES);
  decibels.forEach((db, hop) => {
    samples.fill(10 ** (db / 20), hop * LEVEL_HOP_SAMPLES, (hop + 1) * LEVEL_HOP_SAMPLES);
  });
  return samples;
}

const everywhere = () => true;

describe('measureLevels', () => {
  it('writes dB above −127 and where there is speech', () => {
    const levels = measureLevels(steps(-20, -60, 0), 0, 4800, (sample) => sample < 1600);
    expect([...levels]).toEqual([0x80 | 107, 67, 127]);
  });

  it('keeps silence, the end of the recording and loud clipping in range', () => {
    const samples = new Float32Array(2400);
    samples.fill(3, 1600);
    expect([...measureLevels(samples, 0, 2400, () => false)]).toEqual([0, 127]);
  });

  it('is on the grid of the recording, wherever pieces begin', () => {
    const samples = steps(-10, -20, -30, -40, -50, -60);
    const whole = measureLevels(samples, 0, samples.length, everywhere);
    const pieces = [0, 2500, 5000, 9600].flatMap((from, index, all) => {
      const to = all[index + 1];
      return to === undefined ? [] : [...measureLevels(samples.subarray(from), from, to, everywhere)];
    });
    expect(pieces).toEqual([...whole]);
  });
});

describe('QuietPlaces', () => {
  const levelsOf = (decibels: number[], speech: (sample: number) => boolean) =>
    measureLevels(steps(...decibels), 0, decibels.length * LEVEL_HOP_SAMPLES, speech);
  const quiet = (levels: Uint8Array) => {
    const places = quietPlacesOf(levels, PARAMETERS);
    return Array.from(levels, (_, hop) => places.has(hop * LEVEL_HOP_SAMPLES + 10));
  };

  it('holds what is far below the speech, but not what is close to something louder', () => {
    const decibels = [-30, -70, -70, -70, -70, -70, -50, -30];
    expect(quiet(levelsOf(decibels, everywhere))).toEqual([false, false, false, true, false, false, false, false]);
  });

  it('goes by speech alone: loud music makes quiet speech not quieter', () => {
    const decibels = [-5, -5, -5, -5, -5, -40, -40, -40, -40, -40];
    expect(quiet(levelsOf(decibels, (sample) => sample > 8000))).not.toContain(true);
  });

  it('is empty without speech', () => {
    expect(quiet(levelsOf([-30, -120, -120, -120, -120, -120], () => false))).not.toContain(true);
  });
});
