import { describe, expect, it } from 'vitest';
import { audioPorts, random } from '../../test/helpers/audio.ts';
import { ENCODINGS, SAMPLE_RATES_HZ } from '../contract/live.ts';
import { decodeFrame, frameBytes, LiveInput } from './live-frames.ts';

it('accepts frames of exactly 100 ms in every encoding and rate', () => {
  const sizes = ENCODINGS.map((encoding) =>
    SAMPLE_RATES_HZ.map((sampleRateHz) => frameBytes({ sampleRateHz, encoding })),
  );
  expect(sizes).toEqual([
    [3200, 6400, 9600, 17_640, 19_200],
    [1600, 3200, 4800, 8820, 9600],
    [800, 1600, 2400, 4410, 4800],
  ]);
  for (const encoding of ENCODINGS) {
    for (const sampleRateHz of SAMPLE_RATES_HZ) {
      const format = { sampleRateHz, encoding };
      const bytes = frameBytes(format);
      expect(decodeFrame(new ArrayBuffer(bytes), format)?.samples).toHaveLength(sampleRateHz / 10);
      for (const wrong of [0, 1, bytes - 1, bytes + 1, 2 * bytes]) {
        expect(decodeFrame(new ArrayBuffer(wrong), format)).toBeUndefined();
      }
    }
  }
});

it('reads 16-bit samples as parts of full scale', () => {
  const frame = new ArrayBuffer(1600);
  const values = [0, 1, -1, 16_384, 32_767, -32_768];
  for (const [i, value] of values.entries()) new DataView(frame).setInt16(2 * i, value, true);
  const decoded = decodeFrame(frame, { sampleRateHz: 8000, encoding: 'pcm_s16le' })!;
  expect([...decoded.samples.subarray(0, 6)]).toEqual([0, 1 / 32_768, -1 / 32_768, 0.5, 32_767 / 32_768, -1]);
  expect(decoded.silenced).toBe(false);
});

it('reads µ-law as parts of full scale', () => {
  const frame = new Uint8Array(800).fill(0xff);
  frame.set([0x00, 0x80, 0x7f]);
  const { samples } = decodeFrame(frame.buffer, { sampleRateHz: 8000, encoding: 'mulaw' })!;
  expect([...samples.subarray(0, 4)]).toEqual([-32_124 / 32_768, 32_124 / 32_768, -0, 0]);
});

it('clips values outside −1…1 and silences frames with NaN or infinity', () => {
  const format = { sampleRateHz: 8000, encoding: 'pcm_f32le' } as const;
  const loud = decodeFrame(new Float32Array(800).fill(-3e38).buffer, format)!;
  expect(new Set(loud.samples)).toEqual(new Set([-1]));
  for (const value of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
    const samples = new Float32Array(800).fill(0.5);
    samples[799] = value;
    const decoded = decodeFrame(samples.buffer, format)!;
    expect(decoded.silenced).toBe(true);
    expect(new Set(decoded.samples)).toEqual(new Set([0]));
  }
});

const { resampler } = audioPorts();
const SECONDS = 3;

function noise(count: number): Float32Array {
  const next = random(7);
  return Float32Array.from({ length: count }, () => 2 * next() - 1);
}

/**
 * Output for `samples`, pushed in frames. Before each frame for which `isSuspended` is true, another input continues.
 */
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

  it('gives 16,000 samples per second, unchanged by suspensions', () => {
    const continuous = convert(rateHz, samples, () => false);
    expect(continuous).toHaveLength(16_000 * SECONDS);
    expect(convert(rateHz, samples, () => true)).toEqual(continuous);
    expect(convert(rateHz, samples, (frame) => frame % 7 === 3)).toEqual(continuous);
  });

  it('keeps only the input samples that later outputs need', () => {
    const input = new LiveInput(rateHz, resampler);
    for (let at = 0; at < samples.length; at += rateHz / 10) input.push(samples.subarray(at, at + rateHz / 10));
    expect(input.suspend().tail.length).toBeLessThan(rateHz / 50);
  });

  it('gives 1600 samples for each frame of 100 ms', () => {
    const input = new LiveInput(rateHz, resampler);
    for (let at = 0; at < samples.length; at += rateHz / 10) {
      expect(input.push(samples.subarray(at, at + rateHz / 10))).toHaveLength(1600);
    }
    input.suspend();
  });

  it('delays the signal by less than 5 ms', () => {
    const step = Float32Array.from({ length: rateHz }, (_, i) => (i < rateHz / 2 ? 0 : 0.5));
    const out = convert(rateHz, step, () => false);
    const lateSamples = out.findIndex((value) => value > 0.25) - 8000;
    expect(lateSamples).toBeGreaterThanOrEqual(0);
    expect(lateSamples).toBeLessThan(80);
  });
});
