import { describe, expect, it } from 'vitest';
import { audioPorts, random } from '../../../test/helpers/audio.ts';
import { SAMPLE_RATES_HZ } from '../../contract/live.ts';
import { LiveInput } from './input.ts';

const { resampler } = audioPorts();
const SECONDS = 3;

function noise(count: number): Float32Array {
  const next = random(7);
  return Float32Array.from({ length: count }, () => 2 * next() - 1);
}

/** All that comes out for `samples`, sent in frames; suspended and taken up again by another input at every frame that is told. */
function convert(rateHz: number, samples: Float32Array, isSuspended: (frame: number) => boolean): number[] {
  const frameSamples = rateHz / 10;
  const out: number[] = [];
  let input = new LiveInput(rateHz, resampler);
  for (let at = 0, frame = 0; at < samples.length; at += frameSamples, frame++) {
    if (isSuspended(frame)) input = new LiveInput(rateHz, resampler, structuredClone(input.suspend()));
    out.push(...input.push(samples.subarray(at, at + frameSamples)));
  }
  input.suspend();
  return out;
}

describe.each(SAMPLE_RATES_HZ)('at %i Hz', (rateHz) => {
  const samples = noise(rateHz * SECONDS);

  it('gives 16,000 samples a second, the same however often it was suspended', () => {
    const undisturbed = convert(rateHz, samples, () => false);
    expect(undisturbed).toHaveLength(16_000 * SECONDS);
    expect(convert(rateHz, samples, () => true)).toEqual(undisturbed);
    expect(convert(rateHz, samples, (frame) => frame % 7 === 3)).toEqual(undisturbed);
  });

  it('keeps only what outputs to come look at', () => {
    const input = new LiveInput(rateHz, resampler);
    for (let at = 0; at < samples.length; at += rateHz / 10) input.push(samples.subarray(at, at + rateHz / 10));
    expect(input.suspend().tail.length).toBeLessThan(rateHz / 50);
  });

  it('gives 1600 samples for each frame of 100 ms: some were missing, and every look waited for the frame behind', () => {
    const input = new LiveInput(rateHz, resampler);
    for (let at = 0; at < samples.length; at += rateHz / 10) {
      expect(input.push(samples.subarray(at, at + rateHz / 10))).toHaveLength(1600);
    }
    input.suspend();
  });

  it('is late by less than 5 ms', () => {
    const step = Float32Array.from({ length: rateHz }, (_, i) => (i < rateHz / 2 ? 0 : 0.5));
    const out = convert(rateHz, step, () => false);
    const lateSamples = out.findIndex((value) => value > 0.25) - 8000;
    expect(lateSamples).toBeGreaterThanOrEqual(0);
    expect(lateSamples).toBeLessThan(80);
  });
});
