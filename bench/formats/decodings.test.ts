import { describe, expect, it } from 'vitest';
import { compare, worstDifference } from './decodings.ts';

const signal = Float32Array.from({ length: 30_000 }, (_, i) => 0.3 * Math.sin(i / 9 + 3 * Math.sin(i / 700)));

describe('compare', () => {
  it('returns an infinite ratio for equal signals', () => {
    expect(compare(signal, signal)).toEqual({
      snrDb: Number.POSITIVE_INFINITY,
      extraSamples: 0,
      offsetSamples: 0,
    });
  });

  it('returns the ratio of the powers in dB', () => {
    const noisy = signal.map((value, i) => value + (i % 2 ? 0.003 : -0.003));
    const power = signal.reduce((sum, value) => sum + value ** 2, 0) / signal.length;
    expect(compare(noisy, signal).snrDb).toBeCloseTo(10 * Math.log10(power / 0.003 ** 2), 2);
  });

  it('finds a shift in either direction, and the difference in length', () => {
    const late = new Float32Array(signal.length + 100);
    late.set(signal, 100);
    expect(compare(late, signal)).toMatchObject({ offsetSamples: 100, extraSamples: 100 });
    expect(compare(signal.subarray(777), signal)).toMatchObject({ offsetSamples: -777, extraSamples: -777 });
  });
});

it('worstDifference is 1 for different lengths', () => {
  expect(worstDifference(signal, signal)).toBe(0);
  expect(worstDifference(Float32Array.of(0, 0.5), Float32Array.of(0, 0.25))).toBe(0.25);
  expect(worstDifference(Float32Array.of(0), Float32Array.of(0, 0))).toBe(1);
});
