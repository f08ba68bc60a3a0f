import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { PoolingInput, TrunkOutput } from '../../diarization/model-ports.ts';
import { createDsp } from './dsp.ts';

const dsp = createDsp(new WebAssembly.Module(readFileSync(new URL('../../../wasm/dsp/dsp.wasm', import.meta.url))));

/** The raw values of a version 1 .npy file. */
function npyBytes(name: string): ArrayBuffer {
  const file = readFileSync(new URL(`../../../test/golden/data/${name}`, import.meta.url));
  return new Uint8Array(file.subarray(10 + file.readUInt16LE(8))).buffer;
}

describe('filterbank', () => {
  const samples = Float32Array.from(new Int16Array(npyBytes('fbank_samples.npy')), (value) => value / 32768);
  const expected = new Float32Array(npyBytes('fbank_expected.npy'));

  it('agrees with kaldi-native-fbank within 5e-4 in every band of every frame', () => {
    const out = dsp.filterbank.compute(samples);
    expect(out.length).toBe(expected.length);
    let worst = 0;
    for (let i = 0; i < out.length; i++) worst = Math.max(worst, Math.abs(out[i] - expected[i]));
    // Measured 2.2e-4, in frames of noise where single precision FFTs differ; -15.9…29 is the range.
    expect(worst).toBeLessThan(5e-4);
  });

  it('gives a frame the same bits at any position in a block', () => {
    const whole = dsp.filterbank.compute(samples).slice();
    for (const first of [1, 2, 3, 50]) {
      const part = dsp.filterbank.compute(samples.subarray(first * 160));
      expect(part).toEqual(whole.subarray(first * 80));
    }
  });

  it('processes recordings longer than its own block', () => {
    const long = new Float32Array(16000 * 25);
    for (let i = 0; i < long.length; i++) long[i] = samples[i % samples.length];
    const out = dsp.filterbank.compute(long).slice();
    expect(out.length).toBe((1 + Math.floor((long.length - 400) / 160)) * 80);
    const once = dsp.filterbank.compute(samples);
    for (const second of [0, 9, 10, 24]) expect(out.subarray(second * 8000, second * 8000 + once.length)).toEqual(once);
  });

  it('returns no frame below 25 ms, and one more every 10 ms', () => {
    const frames = (count: number) => dsp.filterbank.compute(new Float32Array(count)).length / 80;
    expect([0, 399, 400, 559, 560].map(frames)).toEqual([0, 0, 1, 1, 2]);
  });

  it('floors digital silence at the energy floor', () => {
    const out = dsp.filterbank.compute(new Float32Array(400));
    for (const value of out) expect(value).toBeCloseTo(Math.log(1.1920929e-7), 5);
  });
});

describe('mel powers', () => {
  const samples = Float32Array.from(new Int16Array(npyBytes('fbank_samples.npy')), (value) => value / 32768);
  const expected = new Float32Array(npyBytes('melpower_expected.npy'));

  it('agree with double precision to 1e-4 of the power or 1e-9 of the loudest band', () => {
    const out = dsp.melPower.compute(samples);
    expect(out.length).toBe(expected.length);
    let worst = 0;
    for (let frame = 0; frame < out.length; frame += 64) {
      const loudest = Math.max(...expected.subarray(frame, frame + 64));
      for (let i = frame; i < frame + 64; i++) {
        const allowed = 1e-4 * expected[i] + 1e-9 * loudest;
        if (out[i] !== expected[i]) worst = Math.max(worst, Math.abs(out[i] - expected[i]) / allowed);
      }
    }
    expect(worst).toBeLessThan(1);
  });

  it('do not depend on a constant offset', () => {
    const faint = samples.map((value) => value / 64);
    const powers = dsp.melPower.compute(faint).slice();
    const loudest = Math.max(...powers);
    dsp.melPower.compute(faint.map((value) => value + 0.5)).forEach((power, index) => {
      expect(Math.abs(power - powers[index]!)).toBeLessThan(1e-3 * powers[index]! + 1e-5 * loudest);
    });
  });

  it('give a frame the same bits at any position, also in recordings longer than a block', () => {
    const whole = dsp.melPower.compute(samples).slice();
    for (const first of [1, 2, 3, 50]) {
      expect(dsp.melPower.compute(samples.subarray(first * 160))).toEqual(whole.subarray(first * 64));
    }
    const long = new Float32Array(16000 * 3);
    for (const second of [0, 1, 2]) long.set(samples, second * 16000);
    const out = dsp.melPower.compute(long);
    expect(out.length).toBe(298 * 64);
    for (const second of [0, 1, 2]) expect(out.subarray(second * 6400, second * 6400 + whole.length)).toEqual(whole);
  });
});

/** Pseudo-random trunk output. */
function trunkOutput(frameCount: number, channels: number, seed: number): TrunkOutput {
  let state = seed;
  const next = () => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
    return state / 0x7fffffff;
  };
  const frames = Float32Array.from({ length: frameCount * channels }, () => Math.max(0, 3 * next() - 1));
  return { frames, frameCount, channels };
}

/** The definition in double precision, in two passes. */
function reference(pieces: readonly PoolingInput[]): number[] {
  const channels = pieces[0].trunk.channels;
  const means: number[] = [];
  const deviations: number[] = [];
  for (let c = 0; c < channels; c++) {
    const kept = pieces.flatMap(({ trunk, mask }) =>
      Array.from(mask.keys())
        .filter((t) => mask[t] !== 0)
        .map((t) => trunk.frames[t * channels + c]),
    );
    const mean = kept.reduce((sum, x) => sum + x, 0) / kept.length;
    const variance = kept.reduce((sum, x) => sum + (x - mean) ** 2, 0) / kept.length;
    means.push(mean);
    deviations.push(Math.sqrt(Math.max(variance, 1e-5)));
  }
  return [...means, ...deviations];
}

function worstDifference(pieces: readonly PoolingInput[]): number {
  const out = dsp.pooling.pool(pieces);
  const expected = reference(pieces);
  expect(out?.length).toBe(expected.length);
  return Math.max(...expected.map((value, i) => Math.abs(value - out![i]) / Math.max(Math.abs(value), 0.1)));
}

const every = (count: number, step: number) => Uint8Array.from({ length: count }, (_, i) => (i % step === 0 ? 1 : 0));

describe('statistics pooling', () => {
  it('agrees with the definition over the kept frames of one stretch', () => {
    for (const step of [1, 2, 7, 499])
      expect(worstDifference([{ trunk: trunkOutput(500, 512, step), mask: every(500, step) }])).toBeLessThan(1e-5);
  });

  it('pools several stretches together, with a number of channels that fills no vector', () => {
    const pieces = [3, 130, 64].map((frames, i) => ({
      trunk: trunkOutput(frames, 37, 90 + i),
      mask: every(frames, 2),
    }));
    expect(worstDifference(pieces)).toBeLessThan(1e-5);
  });

  it('keeps the variance floor, and returns nothing without a frame', () => {
    const trunk = trunkOutput(10, 8, 4);
    const one = dsp.pooling.pool([{ trunk, mask: every(10, 10) }]);
    expect(one?.subarray(0, 8)).toEqual(trunk.frames.subarray(0, 8));
    for (const deviation of one!.subarray(8)) expect(deviation).toBeCloseTo(Math.sqrt(1e-5), 7);
    expect(dsp.pooling.pool([{ trunk, mask: new Uint8Array(10) }])).toBeUndefined();
    expect(dsp.pooling.pool([])).toBeUndefined();
  });

  it('gives the same bits for the same kept frames in one or two stretches', () => {
    const trunk = trunkOutput(200, 64, 21);
    const cut = (from: number, to: number) => ({
      trunk: {
        frames: trunk.frames.subarray(from * 64, to * 64),
        frameCount: to - from,
        channels: 64,
      },
      mask: new Uint8Array(to - from).fill(1),
    });
    expect(dsp.pooling.pool([cut(0, 90), cut(90, 200)])).toEqual(dsp.pooling.pool([cut(0, 200)]));
  });
});
