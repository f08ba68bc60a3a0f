import { expect, it } from 'vitest';
import { ENCODINGS, SAMPLE_RATES_HZ } from '../../contract/live.ts';
import { decodeFrame, frameBytes } from './frames.ts';

it('wants 100 ms in every encoding and rate, to the byte', () => {
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

it('clips what is too loud and silences what is no number', () => {
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
