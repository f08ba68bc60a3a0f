import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { createDsp } from './dsp.ts';

const dsp = createDsp(new WebAssembly.Module(readFileSync(new URL('../../../wasm/dsp/dsp.wasm', import.meta.url))));

/** Output for `input`, pushed in blocks of the given sizes, which are repeated as needed. */
function resample(
  fromHz: number,
  input: Float32Array,
  { firstInput = 0, firstOutput = 0, blocks = [1152], flush = true } = {},
): Float32Array {
  const resampler = dsp.resampler.open(fromHz, firstInput, firstOutput);
  const out: number[] = [];
  for (let at = 0, i = 0; at < input.length; i++) {
    const size = blocks[i % blocks.length];
    out.push(...resampler.push(input.subarray(at, at + size)));
    at += size;
  }
  if (flush) out.push(...resampler.flush());
  resampler.close();
  return Float32Array.from(out);
}

const sine = (rateHz: number, toneHz: number, count: number) =>
  Float32Array.from({ length: count }, (_, i) => 0.5 * Math.sin((2 * Math.PI * toneHz * i) / rateHz));

/** Deterministic noise in −1…1. */
function noise(count: number): Float32Array {
  let state = 12345;
  return Float32Array.from({ length: count }, () => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
    return state / 0x40000000 - 1;
  });
}

function energy(samples: Float32Array, from: number, to: number): number {
  let sum = 0;
  for (let i = from; i < to; i++) sum += samples[i] ** 2;
  return sum / (to - from);
}

const RATES = [8000, 11025, 12345, 22050, 24000, 44100, 44101, 48000, 96000, 192000];

describe('resampler to 16 kHz', () => {
  it.each(RATES)('reproduces tones from %i Hz without delay, error below -100 dB', (rateHz) => {
    for (const toneHz of [440, 2000, Math.min(6500, 0.41 * rateHz)]) {
      const out = resample(rateHz, sine(rateHz, toneHz, rateHz / 2));
      const ideal = sine(16000, toneHz, out.length);
      const error = out.map((value, i) => value - ideal[i]);
      const margin = 1000;
      const decibels = 10 * Math.log10(energy(error, margin, out.length - margin) / 0.125);
      expect(decibels, `${toneHz} Hz`).toBeLessThan(-100);
    }
  });

  it.each([22050, 44100, 44101, 48000, 96000])(
    'attenuates frequencies above 8.45 kHz by 100 dB, from %i Hz',
    (rateHz) => {
      for (const toneHz of [8450, 8500, 10000, 0.47 * rateHz]) {
        const out = resample(rateHz, sine(rateHz, toneHz, rateHz / 2));
        expect(10 * Math.log10(energy(out, 1000, out.length - 1000) / 0.125), `${toneHz} Hz`).toBeLessThan(-100);
      }
    },
  );

  it.each(RATES)('gives a shard the same bits as the whole run, from %i Hz', (rateHz) => {
    const input = noise(Math.round(rateHz * 0.9));
    const whole = resample(rateHz, input, { blocks: [input.length] });
    const context = dsp.resampler.contextInputSamples(rateHz);
    for (const firstOutput of [1, 4321, 9000]) {
      const position = Math.floor((firstOutput * rateHz) / 16000);
      const firstInput = Math.max(0, position - context);
      const shard = resample(rateHz, input.subarray(firstInput), { firstInput, firstOutput, blocks: [7, 4096, 333] });
      expect(shard).toEqual(whole.subarray(firstOutput));
    }
  });

  it.each(RATES)('gives the same bits for large and small blocks, from %i Hz', (rateHz) => {
    const input = noise(Math.round(rateHz * 0.5));
    expect(resample(rateHz, input, { blocks: [input.length] })).toEqual(resample(rateHz, input, { blocks: [5] }));
  });

  it('gives the same bits at hour 23 of a recording as at its start', () => {
    const input = noise(20000);
    const seconds = 23 * 3600;
    for (const rateHz of [11025, 44100, 44101]) {
      const late = resample(rateHz, input, { firstInput: seconds * rateHz, firstOutput: seconds * 16000 });
      expect(late).toEqual(resample(rateHz, input));
    }
  });

  it('keeps the position of an impulse, with a symmetric response', () => {
    for (const [rateHz, at] of [
      [48000, 30000],
      [8000, 5000],
      [32000, 20000],
    ]) {
      const input = new Float32Array(at * 2);
      input[at] = 1;
      const out = resample(rateHz, input);
      const centre = (at * 16000) / rateHz;
      expect(out.indexOf(Math.max(...out))).toBe(centre);
      for (let i = 1; i < 40; i++) expect(out[centre + i]).toBeCloseTo(out[centre - i], 6);
    }
  });

  it('keeps the position of an impulse when the input starts late', () => {
    const input = new Float32Array(6000);
    input[4800 - 300] = 1;
    const out = resample(48000, input, { firstInput: 480300, firstOutput: 160100 });
    // input sample 480300 + 4500 = 484800 → output 161600
    expect(out.indexOf(Math.max(...out))).toBe(161600 - 160100);
  });

  it.each([8000, 44100, 44101])(
    'ends with the last output whose position lies inside the input, from %i Hz',
    (rateHz) => {
      for (const count of [0, 1, 441, 10007])
        expect(resample(rateHz, noise(count)).length).toBe(Math.ceil((count * 16000) / rateHz));
    },
  );

  it('passes 16 kHz through unchanged', () => {
    const input = noise(5000);
    expect(dsp.resampler.contextInputSamples(16000)).toBe(0);
    expect(resample(16000, input, { blocks: [100, 3] })).toEqual(input);
    expect(resample(16000, input, { firstInput: 800, firstOutput: 1000 })).toEqual(input.subarray(200));
  });

  it('keeps a constant input constant in every phase', () => {
    const out = resample(44101, new Float32Array(20000).fill(0.25));
    for (let i = 200; i < out.length - 200; i++) expect(Math.abs(out[i] - 0.25)).toBeLessThan(1e-6);
  });

  it('accepts a block of any size', () => {
    const input = noise(300000);
    expect(resample(48000, input, { blocks: [input.length] })).toEqual(resample(48000, input, { blocks: [1000] }));
  });

  it('refuses unsupported sample rates', () => {
    for (const rateHz of [0, -8000, 999, 1000001]) expect(() => dsp.resampler.open(rateHz, 0, 0)).toThrow(RangeError);
  });

  it('does not grow its memory with the recording, and frees it on close', () => {
    const block = noise(4096);
    const run = () => {
      const resampler = dsp.resampler.open(12345, 0, 0);
      for (let i = 0; i < 500; i++) resampler.push(block);
      resampler.close();
    };
    run();
    const before = dsp.memoryBytes();
    for (let i = 0; i < 20; i++) run();
    expect(dsp.memoryBytes()).toBe(before);
  });
});
