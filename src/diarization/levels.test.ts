import { describe, expect, it } from 'vitest';
import { LEVEL_HOP_SAMPLES, loudestDb, measureLevels, quietPlacesOf } from './levels.ts';

const PARAMETERS = { loudShare: 0.9, belowDb: 26, reachSeconds: 0.2, voicedShare: 0.3, voicedReachSeconds: 0.5 };

/** The tenths that are voiced are told by the sign of their first sample. */
const voicing = {
  compute: (samples: Float32Array) =>
    Float32Array.from({ length: Math.floor(samples.length / LEVEL_HOP_SAMPLES) }, (_, hop) =>
      samples[hop * LEVEL_HOP_SAMPLES] < 0 ? 0.9 : 0.2,
    ),
};
const marks = (isSpeechAt: (sample: number) => boolean) => ({ isSpeechAt, voicing, minPeriodicity: 0.7 });

/** As loud as so many dB in each tenth of a second: up and down from sample to sample, up first. */
function steps(...decibels: number[]): Float32Array {
  return Float32Array.from({ length: decibels.length * LEVEL_HOP_SAMPLES }, (_, at) => {
    const peak = 10 ** (decibels[Math.floor(at / LEVEL_HOP_SAMPLES)]! / 20);
    return at % 2 === 0 ? peak : -peak;
  });
}

const everywhere = marks(() => true);

describe('measureLevels', () => {
  it('writes steps of 2 dB above −126, what is voiced and where there is speech', () => {
    const samples = steps(-20, -60, 0);
    samples.subarray(1600, 3200).forEach((value, index, tenth) => {
      tenth[index] = -value;
    });
    const levels = measureLevels(
      samples,
      0,
      4800,
      marks((sample) => sample < 1600),
    );
    expect([...levels]).toEqual([0x80 | 53, 0x40 | 33, 63]);
  });

  it('tell the loudest tenth by its level alone, voiced or not, speech or not', () => {
    const loud = steps(-40, -20, -60).map((value, at) => (at < 1600 ? -value : value));
    expect(
      loudestDb(
        measureLevels(
          loud,
          0,
          4800,
          marks((sample) => sample > 3200),
        ),
      ),
    ).toBe(-20);
  });

  it('keeps silence, the end of the recording and loud clipping in range', () => {
    const samples = new Float32Array(2400);
    samples.set(steps(10).subarray(0, 800), 1600);
    expect([
      ...measureLevels(
        samples,
        0,
        2400,
        marks(() => false),
      ),
    ]).toEqual([0, 63]);
  });

  it('hears no offset and no tremor: either hid the pauses of faint recordings', () => {
    const samples = steps(-30, -40, -50);
    const shaken = samples.map((value, at) => value + 0.06 + 0.002 * Math.sin((2 * Math.PI * 2 * at) / 16_000));
    expect(measureLevels(shaken, 0, 4800, everywhere)).toEqual(measureLevels(samples, 0, 4800, everywhere));
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
    measureLevels(steps(...decibels), 0, decibels.length * LEVEL_HOP_SAMPLES, marks(speech));
  const quiet = (levels: Uint8Array) => {
    const places = quietPlacesOf(levels, PARAMETERS);
    return Array.from(levels, (_, hop) => places.has(hop * LEVEL_HOP_SAMPLES + 10));
  };

  it('holds what is far below the speech, but not what is close to something louder', () => {
    const decibels = [-30, -70, -70, -70, -70, -70, -50, -30];
    expect(quiet(levelsOf(decibels, () => true))).toEqual([false, false, false, true, false, false, false, false]);
  });

  it('goes by speech alone: loud music makes quiet speech not quieter', () => {
    const decibels = [-5, -5, -5, -5, -5, -40, -40, -40, -40, -40];
    expect(quiet(levelsOf(decibels, (sample) => sample > 8000))).not.toContain(true);
  });

  it('holds no voice, however faint, and nothing close to one, but a crackle that seems periodic', () => {
    const decibels = Array.from({ length: 40 }, (_, hop) => (hop < 10 ? -30 : -70));
    const quietHops = (from: number, to: number) => {
      const samples = steps(...decibels);
      const voiced = samples.subarray(from * LEVEL_HOP_SAMPLES, to * LEVEL_HOP_SAMPLES);
      voiced.set(voiced.map((value) => -value));
      const found = quiet(measureLevels(samples, 0, samples.length, everywhere));
      return found.flatMap((isQuiet, hop) => (isQuiet ? [hop] : []));
    };
    const all = decibels.flatMap((_, hop) => (hop >= 12 ? [hop] : []));
    expect(quietHops(18, 21)).toEqual(all);
    // Four of the eleven around hop 16, and around hop 25.
    expect(quietHops(18, 24)).toEqual(all.filter((hop) => hop < 16 || hop > 25));
  });

  it('is empty without speech', () => {
    expect(quiet(levelsOf([-30, -120, -120, -120, -120, -120], () => false))).not.toContain(true);
  });
});
