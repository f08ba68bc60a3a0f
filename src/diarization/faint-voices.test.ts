import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { createDsp } from '../platform/wasm/dsp.ts';
import { FaintVoices } from './faint-voices.ts';
import { settingsOf } from './parameters.ts';

const { melPower, voicing } = createDsp(
  new WebAssembly.Module(readFileSync(new URL('../../wasm/dsp/dsp.wasm', import.meta.url))),
);
const PARAMETERS = settingsOf('precision-2').faintVoices;
const BANDS = 64;
const SECONDS = 10;

type Sound = (i: number) => number;

let state = 1;
const hiss: Sound = () => {
  state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
  return 0.3 * (state / 0x40000000 - 1);
};
const voice: Sound = (i) =>
  [1, 2, 3, 4, 5].reduce((sum, k) => sum + Math.sin((k * i * Math.PI * 2 * 140) / 16000), 0) / 10;

/** A second of each, at so many dB. */
function recording(...seconds: readonly (readonly [sound: Sound, db: number])[]): Float32Array {
  return Float32Array.from({ length: seconds.length * 16000 }, (_, i) => {
    const [sound, db] = seconds[Math.floor(i / 16000)];
    return sound(i) * 10 ** (db / 20);
  });
}

/** Powers of a window with its two edge frames, as a `Segmenter` has them. */
function powersOf(window: Float32Array): Float32Array {
  const padded = new Float32Array(120 + window.length + 120);
  padded.set(window, 120);
  return melPower.compute(padded).slice();
}

/** By how much each second was raised in the middle, dB. */
function raised(window: Float32Array, faint = new FaintVoices(voicing, PARAMETERS), start = 0): number[] {
  const powers = powersOf(window);
  const out = faint.raise(window, start, powers);
  return Array.from({ length: window.length / 16000 }, (_, second) => {
    const at = (second * 100 + 50) * BANDS + 8;
    return Math.round(100 * Math.log10(out[at] / powers[at])) / 10;
  });
}

const repeat = (count: number, sound: Sound, db: number) => Array.from({ length: count }, () => [sound, db] as const);

describe('FaintVoices', () => {
  it('raises a voice by a share of what it is below the plain range, up to a bound', () => {
    const talk = (db: number) => recording(...repeat(6, voice, 0), ...repeat(4, voice, db));
    expect(raised(talk(-28)).slice(7, 10)).toEqual([12, 12, 12]);
    expect(raised(talk(-60)).slice(7, 10)).toEqual([20, 20, 20]);
    expect(raised(talk(-28)).slice(0, 5)).toEqual([0, 0, 0, 0, 0]);
  });

  it('goes by the loudest of a window, however little of it that is: one loud sentence, and somebody far away', () => {
    expect(raised(recording(...repeat(1, voice, 0), ...repeat(9, voice, -28))).slice(3, 10)).toEqual(Array(7).fill(12));
  });

  it('leaves the quiet between the syllables of a loud voice where it is', () => {
    const window = recording(...repeat(SECONDS, voice, 0));
    for (let at = 4000; at < window.length; at += 8000) {
      for (let i = at; i < at + 2400; i++) window[i]! *= 0.03;
    }
    const powers = powersOf(window);
    expect(new FaintVoices(voicing, PARAMETERS).raise(window, 0, powers)).toBe(powers);
  });

  it('gives back what it was given where voices differ by little, and in silence', () => {
    for (const window of [recording(...repeat(5, voice, 0), ...repeat(5, voice, -7)), new Float32Array(160000)]) {
      const powers = powersOf(window);
      expect(new FaintVoices(voicing, PARAMETERS).raise(window, 0, powers)).toBe(powers);
    }
  });

  it('leaves noise in a pause where it is', () => {
    expect(raised(recording(...repeat(6, voice, 0), ...repeat(4, hiss, -30)))).toEqual(Array(SECONDS).fill(0));
  });

  it('gives a window the same to the bit, whatever was seen before', () => {
    const whole = recording(
      ...repeat(6, voice, 0),
      ...repeat(5, voice, -25),
      ...repeat(3, hiss, -30),
      ...repeat(6, voice, -3),
      ...repeat(10, voice, -31),
    );
    const faint = new FaintVoices(voicing, PARAMETERS);
    for (const start of [0, 16000, 32000, 36000, 40000, 44000, 44080, 116000, 100000, 180000, 320000]) {
      const window = whole.subarray(start, start + SECONDS * 16000);
      const powers = powersOf(window);
      const found = faint.raise(window, start, powers).slice();
      expect(found, `window at ${start}`).toEqual(
        new FaintVoices(voicing, PARAMETERS).raise(window, start, powers).slice(),
      );
    }
  }, 90_000);

  it('takes windows of other lengths, down to less than a tenth of a second', () => {
    const faint = new FaintVoices(voicing, PARAMETERS);
    for (const length of [160000, 80000, 1600, 1599, 480, 160000]) {
      const window = recording(...repeat(5, voice, 0), ...repeat(5, voice, -30)).subarray(0, length);
      const powers = powersOf(window);
      expect(faint.raise(window, 0, powers).slice()).toEqual(
        new FaintVoices(voicing, PARAMETERS).raise(window, 0, powers).slice(),
      );
    }
  });
});
