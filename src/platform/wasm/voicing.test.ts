import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { createDsp } from './dsp.ts';

const { voicing } = createDsp(
  new WebAssembly.Module(readFileSync(new URL('../../../wasm/dsp/dsp.wasm', import.meta.url))),
);
const HOP = 1600;

function noise(length: number, seed = 1): Float32Array {
  let state = seed;
  return Float32Array.from({ length }, () => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
    return state / 0x40000000 - 1;
  });
}

/** A pulse train of 40 harmonics falling off as those of a voice do. */
const vowel = (hz: number, length: number) =>
  Float32Array.from({ length }, (_, i) => {
    let sum = 0;
    for (let k = 1; k <= 40 && k * hz < 7000; k++) sum += Math.sin((2 * Math.PI * k * hz * i) / 16000) / k;
    return 0.1 * sum;
  });

/** The definition, in double precision. */
function reference(samples: Float32Array): number {
  const slow = Array.from({ length: 399 }, (_, i) =>
    samples.subarray(4 * i, 4 * i + 8).reduce((sum, value) => sum + value, 0),
  );
  const best = (start: number) => {
    const span = slow.slice(start, start + 257);
    const mean = span.reduce((sum, value) => sum + value, 0) / 257;
    const x = span.map((value) => value - mean);
    const energy = (from: number) => x.slice(from, from + 200).reduce((sum, value) => sum + value * value, 0);
    const similarities = Array.from({ length: 48 }, (_, at) => {
      const lag = at + 10;
      const product = x.slice(0, 200).reduce((sum, value, i) => sum + value * x[i + lag], 0);
      return product / Math.sqrt(energy(0) * energy(lag));
    });
    return Math.max(0, ...similarities);
  };
  return (best(0) + best(142)) / 2;
}

describe('voicing', () => {
  it('agrees with the definition in double precision', () => {
    const samples = noise(20 * HOP);
    const voice = vowel(137, 20 * HOP);
    for (let i = 0; i < samples.length; i++) samples[i] = 0.02 * samples[i] * (i / samples.length) + voice[i];
    const found = voicing.compute(samples).slice();
    expect(found.length).toBe(20);
    found.forEach((value, hop) => {
      expect(Math.abs(value - reference(samples.subarray(hop * HOP, (hop + 1) * HOP)))).toBeLessThan(1e-5);
    });
  });

  it.each([70, 110, 220, 390])('is high in a vowel at %i Hz, however faint', (hz) => {
    for (const gain of [1, 1e-4]) {
      const samples = vowel(hz, 10 * HOP).map((value) => gain * value);
      expect(Math.min(...voicing.compute(samples))).toBeGreaterThan(0.9);
    }
  });

  it('is low in noise and nothing in silence or at a constant', () => {
    const found = voicing.compute(noise(200 * HOP));
    expect(found.filter((value) => value > 0.7).length).toBe(0);
    expect([...voicing.compute(new Float32Array(2 * HOP))]).toEqual([0, 0]);
    expect([...voicing.compute(new Float32Array(2 * HOP).fill(0.25))]).toEqual([0, 0]);
  });

  it('gives a tenth the same bits wherever it stands, in recordings longer than a block too', () => {
    const samples = noise(45 * HOP, 7);
    const whole = voicing.compute(samples).slice();
    for (const first of [1, 19, 20, 44]) {
      expect(voicing.compute(samples.subarray(first * HOP))).toEqual(whole.subarray(first));
    }
  });

  it('leaves out what is no whole tenth', () => {
    expect([0, 1599, 1600, 3199].map((length) => voicing.compute(new Float32Array(length)).length)).toEqual([
      0, 0, 1, 1,
    ]);
  });
});
