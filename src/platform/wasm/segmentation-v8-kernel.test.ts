import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from 'vitest';
import { decodeFile } from '../../../client/audio/file.ts';
import { moduleAt, nodeAudio } from '../../../client/audio/ports.ts';
import { packaged, unshared } from '../../../wasm/onnxruntime/unshare.mjs';
import { POWER_BANDS, POWER_SHIFT_SAMPLES, Segmenter } from '../../diarization/segmenter.ts';
import { createOnnxRuntime, floatOutput, floatTensor } from '../onnx/runtime.ts';
import { createDsp } from './dsp.ts';
import { createSegmentationV8Kernel, type PowerSegmentationKernel } from './networks.ts';

const CLASSES = 7;
const WINDOW_SAMPLES = 160_000;
/** SHA-256 of the scores of `randomPowers()`: the same in every engine and on every machine. */
const NOISE_SHA256 = 'a2ec4daadf79bf4d35d2bb677041d506d7fdb2ad75275e01da21e1ef1fa3d21e';

const file = (path: string) => new URL(`../../../${path}`, import.meta.url).pathname;
const model = (name: string) => readFileSync(file(`models/${name}`));

let kernel: PowerSegmentationKernel;
/** The kernel on samples. */
let segment: (window: Float32Array) => Promise<Float32Array>;
/** The same network in floating point, with its front end. */
let reference: (window: Float32Array) => Promise<Float32Array>;
let speech: Float32Array;

beforeAll(async () => {
  const module = moduleAt(file('wasm/networks/segmentation-v8.wasm'));
  kernel = createSegmentationV8Kernel(module, model('segmentation-v8.weights'), async () => undefined);
  const { melPower } = createDsp(moduleAt(file('wasm/dsp/dsp.wasm')));
  const info = { id: '', windowSamples: WINDOW_SAMPLES, classes: CLASSES } as never;
  segment = (window) => new Segmenter({ form: 'split', info, run: kernel.run }, melPower).run(window, 0);
  const runtime = createOnnxRuntime(new WebAssembly.Module(unshared(readFileSync(packaged()))));
  const session = await runtime.createSession(model('segmentation-v8.onnx'));
  reference = async (window) =>
    floatOutput(await session.run({ x: floatTensor(window, [1, 1, window.length]) }), 'y').data;
  speech = await decodeFile(file('test/fixtures/conversation.mp3'), nodeAudio());
});

/** Powers over many decades, from a linear congruential generator. */
function randomPowers(): Float32Array {
  let state = 1;
  return new Float32Array(1000 * POWER_BANDS).map(() => {
    state = (Math.imul(state, 1664525) + 1013904223) | 0;
    const value = state / 2 ** 31;
    const square = value * value;
    return 1000 * square * square * square;
  });
}

function mostLikely(scores: Float32Array, frame: number): number {
  const row = scores.subarray(frame * CLASSES, (frame + 1) * CLASSES);
  return row.indexOf(Math.max(...row));
}

/** Frames with the same most likely class, and the largest difference of a probability. */
async function compare(window: Float32Array): Promise<{ frames: number; same: number; difference: number }> {
  const [scores, expected] = [await segment(window), await reference(window)];
  expect(scores.length).toBe(expected.length);
  const frames = scores.length / CLASSES;
  let same = 0;
  for (let frame = 0; frame < frames; frame++) {
    if (mostLikely(scores, frame) === mostLikely(expected, frame)) same++;
  }
  const difference = scores.reduce(
    (largest, score, index) => Math.max(largest, Math.abs(Math.exp(score) - Math.exp(expected[index]))),
    0,
  );
  return { frames, same, difference };
}

describe('the kernel of segmentation-v8', () => {
  it('agrees with the ONNX file on speech in 99.8 % of the frames', async () => {
    let [frames, same] = [0, 0];
    for (const start of [0, 1, 2, 3, 4].map((index) => index * WINDOW_SAMPLES)) {
      const result = await compare(speech.subarray(start, start + WINDOW_SAMPLES));
      expect(result.frames).toBe(500);
      expect(result.difference).toBeLessThan(0.01);
      frames += result.frames;
      same += result.same;
    }
    expect(same / frames).toBeGreaterThan(0.998);
  });

  it('agrees on other levels, an offset, clicks, silence, constants and the start of a stream', async () => {
    const window = speech.slice(0, 64_000);
    const variants: [string, Float32Array][] = [
      ['quiet', window.map((sample) => sample / 1000)],
      ['clipped', window.map((sample) => Math.max(-1, Math.min(1, 20 * sample)))],
      ['with an offset', window.map((sample) => sample + 0.2)],
      ['with clicks', window.map((sample, index) => (index % 8000 === 0 ? 1 : sample / 10))],
      ['silent', new Float32Array(64_000)],
      ['constant', new Float32Array(64_000).fill(0.3)],
      ['start of a stream', speech.slice(0, WINDOW_SAMPLES).fill(0, 0, 100_000)],
    ];
    for (const [name, samples] of variants) {
      const { frames, same, difference } = await compare(samples);
      expect(difference, name).toBeLessThan(0.01);
      expect(same / frames, name).toBeGreaterThan(0.99);
    }
  });

  it('agrees on short and odd lengths, after longer windows', async () => {
    for (const frames of [4, 5, 6, 7, 8, 31, 33, 202, 403, 600, 997]) {
      const { difference } = await compare(speech.subarray(8000, 8000 + frames * POWER_SHIFT_SAMPLES));
      expect(difference, `${frames} frames`).toBeLessThan(0.01);
    }
  });

  it('gives the same bits in every engine, also after other input', async () => {
    const hash = async () =>
      createHash('sha256')
        .update(new Uint8Array((await kernel.run(randomPowers(), 1000)).buffer))
        .digest('hex');
    expect(await hash()).toBe(NOISE_SHA256);
    await kernel.run(new Float32Array(777 * POWER_BANDS).fill(1e30), 777);
    expect(await hash()).toBe(NOISE_SHA256);
  });

  it('refuses windows without a frame and above 10 s', async () => {
    await expect(kernel.run(new Float32Array(3 * POWER_BANDS), 3)).rejects.toThrow(RangeError);
    await expect(kernel.run(new Float32Array(1001 * POWER_BANDS), 1001)).rejects.toThrow(/at most 1000/);
    await expect(kernel.run(new Float32Array(7), 400)).rejects.toThrow(RangeError);
  });

  it('needs 3.7 MB', () => {
    expect(kernel.memoryBytes()).toBeLessThan(3.8e6);
  });
});
