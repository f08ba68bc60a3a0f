import { expect, it } from 'vitest';
import { roundingErrorSamples } from './clock.ts';

const RATE_HZ = 44_100;
/** AAC: 23.22 ms. */
const FRAME = 1024;
const off = (ticks: number, timescale: number, packets: number, samples = FRAME) =>
  roundingErrorSamples({ ticks, timescale, packets }, samples, RATE_HZ);

it('roundingErrorSamples computes the error of durations that are rounded up or down', () => {
  expect(off(23, 1000, 1000)).toBeCloseTo(FRAME - 0.023 * RATE_HZ);
  expect(off(24, 1000, 1000)).toBeCloseTo(FRAME - 0.024 * RATE_HZ);
  expect(off(2089, 90_000, 100_000)).toBeCloseTo(FRAME - (2089 / 90_000) * RATE_HZ);
});

it('roundingErrorSamples is 0 for exact durations', () => {
  expect(off(1024, 44_100, 1_000_000)).toBe(0);
  expect(off(512, 22_050, 1_000_000)).toBe(0);
  expect(off(20, 1000, 1_000_000, 882)).toBe(0);
});

it('roundingErrorSamples is 0 for a few equal durations', () => {
  expect(off(23, 1000, 4)).toBe(0);
  expect(off(24, 1000, 1)).toBe(0);
});

it('roundingErrorSamples is 0 for a duration with an error of a tick or more', () => {
  expect(off(22, 1000, 1000)).toBe(0);
  expect(off(25, 1000, 1000)).toBe(0);
  expect(off(1025, 44_100, 1000)).toBe(0);
});
