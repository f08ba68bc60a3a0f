import { expect, it } from 'vitest';
import { Peaks } from './peaks.ts';

const RATE_HZ = 8000;

it('finds the loudest sample of a span without its neighbours', () => {
  const peaks = new Peaks();
  const second = new Float32Array(RATE_HZ);
  for (let at = 0; at < 600; at++) {
    const samples = second.slice();
    if (at === 333) samples[4000] = -0.8;
    peaks.add(samples, RATE_HZ, at);
  }
  expect(peaks.seconds).toBe(600);
  expect(peaks.loudest(0, 600)).toBeCloseTo(0.8, 2);
  expect(peaks.loudest(333.5, 333.51)).toBeCloseTo(0.8, 2);
  expect(peaks.loudest(0, 250)).toBe(0);
  expect(peaks.loudest(340, 600)).toBe(0);
});

it('keeps the larger peak when more samples of the same span are added', () => {
  const peaks = new Peaks();
  peaks.add(new Float32Array([0.5]), RATE_HZ, 2);
  peaks.add(new Float32Array([0.2]), RATE_HZ, 2);
  expect(peaks.loudest(2, 2.01)).toBeCloseTo(0.5, 2);
  expect(new Peaks().loudest(0, 10)).toBe(0);
});
