import { describe, expect, it } from 'vitest';
import { audioPorts, readSourceRate, worstDifference } from '../../test/helpers/audio.ts';
import { indexOf } from '../../test/helpers/indexes.ts';
import { wavFile } from '../../test/helpers/wav.ts';

const ports = audioPorts();
const RATE_HZ = 16000;

/** Silence, then a tone, at a scale. */
const tone = (scale: number) =>
  Float32Array.from({ length: 5 * RATE_HZ }, (_, i) => (i < RATE_HZ ? 0 : scale * 0.5 * Math.sin(i / 7)));
const wavOf = (samples: Float32Array, channels = 1) =>
  wavFile({ sampleRateHz: RATE_HZ, channels, tag: 3, bits: 32 }, new Uint8Array(samples.buffer));
const decode = async (file: Uint8Array, from = 0) => readSourceRate(file, await indexOf(file), ports, from);

describe('wild float samples', () => {
  it.each([1e6, -1e6, 1e10, 1e30, 3e38])('%d becomes 0, and nothing else changes', async (wild) => {
    for (const scale of [1, 32768]) {
      const samples = tone(scale);
      if (Math.abs(wild) < 1000 * scale) continue;
      const expected = samples.slice();
      for (const at of [100, 40_000, 40_001, 79_999]) {
        samples[at] = wild;
        expected[at] = 0;
      }
      expect(worstDifference(await decode(wavOf(samples)), expected)).toBe(0);
    }
  });

  it('the same ones wherever reading begins', async () => {
    const samples = tone(1);
    for (let at = 5; at < samples.length; at += 9973) samples[at] = 1e6;
    const file = wavOf(samples);
    const whole = await decode(file);
    expect(Math.max(...whole)).toBeLessThan(1);
    for (const from of [1, 16_383, 16_384, 40_000, 79_000]) {
      expect(worstDifference(await decode(file, from), whole.subarray(from))).toBe(0);
    }
  });

  it('in one of two channels', async () => {
    const samples = tone(1);
    samples[50_000] = 1e9;
    const mono = await decode(wavOf(samples, 2));
    expect(mono[25_000]).toBe(0);
    expect(mono[25_001]).toBe(Math.fround((samples[50_002] + samples[50_003]) / 2));
  });
});

it.each([100, 1000, 60_000])('a few samples of ±%d in a recording at ±1 become 0', async (wild) => {
  const samples = tone(1);
  const expected = samples.slice();
  for (const at of [100, 40_000, 40_001, 79_999]) {
    samples[at] = at % 2 === 0 ? wild : -wild;
    expected[at] = 0;
  }
  expect(worstDifference(await decode(wavOf(samples)), expected)).toBe(0);
});

it.each([1, 32768])('of a stretch of damaged bytes in a recording at ±%d nothing loud is left', async (scale) => {
  const samples = tone(scale);
  const bits = new Uint32Array(samples.buffer);
  let state = 7;
  for (let at = 40_000; at < 41_000; at++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    bits[at] = state;
  }
  const decoded = await decode(wavOf(samples));
  const expected = tone(scale);
  expect(worstDifference(decoded.subarray(0, 40_000), expected.subarray(0, 40_000))).toBe(0);
  expect(worstDifference(decoded.subarray(41_000), expected.subarray(41_000))).toBe(0);
  const left = decoded.subarray(40_000, 41_000);
  expect(Math.max(...left.map(Math.abs))).toBeLessThanOrEqual(5 * scale);
});

it('a recording whose samples begin at the wrong byte becomes silence', async () => {
  const bytes = new Uint8Array(tone(1).buffer);
  const shifted = new Uint8Array(bytes.length);
  shifted.set(bytes.subarray(0, bytes.length - 3), 3);
  const decoded = await decode(wavFile({ sampleRateHz: RATE_HZ, channels: 1, tag: 3, bits: 32 }, shifted));
  expect(Math.max(...decoded.map(Math.abs))).toBeLessThanOrEqual(1);
});

it.each([1, 32768, 8388608, 2 ** 31])('a recording scaled to ±%d is read as it is', async (scale) => {
  expect(worstDifference(await decode(wavOf(tone(scale))), tone(scale))).toBe(0);
});
