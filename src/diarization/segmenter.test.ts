import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { SEGMENTATION_INFO } from '../../test/helpers/fake-models.ts';
import { createDsp } from '../platform/wasm/dsp.ts';
import type { SegmentationPort } from './model-ports.ts';
import { Segmenter } from './segmenter.ts';

const { melPower } = createDsp(
  new WebAssembly.Module(readFileSync(new URL('../../wasm/dsp/dsp.wasm', import.meta.url))),
);
const BANDS = 64;

/** A network that returns its input. */
const mirror: SegmentationPort = {
  form: 'split',
  info: SEGMENTATION_INFO,
  run: async (powers, frames) => powers.slice(0, frames * BANDS),
};

const recording = Float32Array.from(
  { length: 40 * 16000 },
  (_, i) => Math.sin(i * (0.05 + 1e-7 * i)) * Math.cos(i / 5e3),
);

/** Powers of a window computed alone, with silence around it. */
function powersAlone(start: number, length: number): Float32Array {
  const padded = new Float32Array(120 + length + 120);
  padded.set(recording.subarray(start, start + length), 120);
  return melPower.compute(padded).slice();
}

/** By bytes: the test library needs a quarter of a second to compare 64,000 numbers. */
const equal = (a: Float32Array, b: Float32Array) => Buffer.from(a.buffer).equals(Buffer.from(b.buffer));

it.each([
  ['windows at a regular step', [0, 40_000, 80_000, 120_000], 160_000],
  ['windows of live streams', [0, 8_000, 16_000, 24_000, 24_000], 80_000],
  [
    'a gap, a step back, a step that is no multiple of the frame shift',
    [0, 200_000, 40_000, 40_001, 200_001, 360_001],
    160_000,
  ],
  ['windows that share only edge frames or none', [0, 159_680, 319_360, 478_880], 160_000],
  ['windows of three, two and one frames', [0, 160, 320], 480],
  ['windows of two frames', [0, 160], 320],
  ['windows of one frame', [0, 160], 160],
])('returns the powers of each window alone: %s', async (_, starts, length) => {
  const segmenter = new Segmenter(mirror, melPower);
  for (const start of starts) {
    const found = await segmenter.run(recording.subarray(start, start + length), start);
    expect(equal(found, powersAlone(start, length)), `window at ${start}`).toBe(true);
  }
});

it('accepts windows of different lengths', async () => {
  const segmenter = new Segmenter(mirror, melPower);
  for (const [start, length] of [
    [0, 160_000],
    [40_000, 80_000],
    [48_000, 80_000],
    [80_000, 160_000],
  ] as const) {
    const found = await segmenter.run(recording.subarray(start, start + length), start);
    expect(equal(found, powersAlone(start, length)), `window at ${start}`).toBe(true);
  }
});

it('computes only new frames and the edges', async () => {
  let computed = 0;
  const counting = {
    compute(samples: Float32Array) {
      computed += samples.length;
      return melPower.compute(samples);
    },
  };
  const segmenter = new Segmenter(mirror, counting);
  await segmenter.run(recording.subarray(0, 160_000), 0);
  computed = 0;
  await segmenter.run(recording.subarray(8_000, 168_000), 8_000);
  // 50 new frames, one block, and two edges.
  expect(computed).toBe(49 * 160 + 400 + 2 * 400);
});

it('passes the samples to a model with its front end inside', async () => {
  const whole: SegmentationPort = { form: 'whole', info: SEGMENTATION_INFO, run: async (window) => window.slice(0, 3) };
  const window = recording.subarray(500, 160_500);
  expect(await new Segmenter(whole, melPower).run(window, 500)).toEqual(window.slice(0, 3));
});
