import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from 'vitest';
import { decodeFile } from '../../../client/audio/file.ts';
import { moduleAt, nodeAudio } from '../../../client/audio/ports.ts';
import { packaged, unshared } from '../../../wasm/onnxruntime/unshare.mjs';
import { createOnnxRuntime, floatOutput, floatTensor } from '../onnx/runtime.ts';
import { createSegmentationKernel, type SegmentationKernel } from './networks.ts';

const CLASSES = 7;
const WINDOW_SAMPLES = 160_000;
/** SHA-256 of the scores of `randomSamples()`: the same in every engine and on every machine. */
const NOISE_SHA256 = '06739f3ae4beda24247f49f7eb98a2bd3331ef9d1b347e6ab5c6ef370894edd2';

const file = (path: string) => new URL(`../../../${path}`, import.meta.url).pathname;
const model = (name: string) => readFileSync(file(`models/${name}`));

let kernel: SegmentationKernel;
/** The same network in floating point. */
let reference: (window: Float32Array) => Promise<Float32Array>;
let speech: Float32Array;

beforeAll(async () => {
  const module = moduleAt(file('wasm/networks/segmentation.wasm'));
  kernel = createSegmentationKernel(module, model('segmentation-3.0.weights'), async () => undefined);
  const runtime = createOnnxRuntime(new WebAssembly.Module(unshared(readFileSync(packaged()))));
  const session = await runtime.createSession(model('segmentation-3.0.onnx'));
  reference = async (window) =>
    floatOutput(await session.run({ x: floatTensor(window, [1, 1, window.length]) }), 'y').data;
  speech = await decodeFile(file('test/fixtures/conversation.mp3'), nodeAudio());
});

/** A window of noise with a slowly changing level, from a linear congruential generator. */
function randomSamples(): Float32Array {
  let state = 1;
  return new Float32Array(WINDOW_SAMPLES).map((_, index) => {
    state = (Math.imul(state, 1664525) + 1013904223) | 0;
    return (state / 2 ** 33) * ((index % 20_000) / 20_000);
  });
}

function mostLikely(scores: Float32Array, frame: number): number {
  const row = scores.subarray(frame * CLASSES, (frame + 1) * CLASSES);
  return row.indexOf(Math.max(...row));
}

/** Frames with the same most likely class, and the largest difference of a probability. */
async function compare(window: Float32Array): Promise<{ frames: number; same: number; difference: number }> {
  const [scores, expected] = [await kernel.run(window), await reference(window)];
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

describe('the kernel of segmentation-3.0', () => {
  it('agrees with the ONNX file on speech in 99.8 % of the frames', async () => {
    let [frames, same] = [0, 0];
    for (const start of [0, 1, 2, 3, 4].map((index) => index * WINDOW_SAMPLES)) {
      const result = await compare(speech.subarray(start, start + WINDOW_SAMPLES));
      expect(result.frames).toBe(589);
      expect(result.difference).toBeLessThan(0.05);
      frames += result.frames;
      same += result.same;
    }
    expect(same / frames).toBeGreaterThan(0.998);
  });

  it('agrees on other levels, an offset, clicks, silence and constants', async () => {
    const window = speech.slice(0, 64_000);
    const variants: [string, Float32Array][] = [
      ['quiet', window.map((sample) => sample / 1000)],
      ['clipped', window.map((sample) => Math.max(-1, Math.min(1, 20 * sample)))],
      ['with an offset', window.map((sample) => sample + 0.2)],
      ['with clicks', window.map((sample, index) => (index % 8000 === 0 ? 1 : sample / 10))],
      ['silent', new Float32Array(64_000)],
      ['constant', new Float32Array(64_000).fill(0.3)],
    ];
    for (const [name, samples] of variants) {
      const { frames, same, difference } = await compare(samples);
      expect(difference, name).toBeLessThan(0.05);
      expect(same / frames, name).toBeGreaterThan(0.99);
    }
  });

  it('agrees on short and odd lengths, after longer windows', async () => {
    for (const samples of [991, 1260, 1261, 5000, 16_001, 32_000, 48_777]) {
      const { frames, difference } = await compare(speech.subarray(8000, 8000 + samples));
      expect(frames).toBeGreaterThan(0);
      expect(difference, `${samples} samples`).toBeLessThan(0.05);
    }
  });

  it('gives the same bits in every engine, also after other input', async () => {
    const hash = async () =>
      createHash('sha256')
        .update(new Uint8Array((await kernel.run(randomSamples())).buffer))
        .digest('hex');
    expect(await hash()).toBe(NOISE_SHA256);
    await kernel.run(new Float32Array(123_457).map((_, index) => (index % 3) - 1));
    expect(await hash()).toBe(NOISE_SHA256);
  });

  it('refuses windows without a frame and above 10 s', async () => {
    await expect(kernel.run(new Float32Array(990))).rejects.toThrow(RangeError);
    await expect(kernel.run(new Float32Array(160_001))).rejects.toThrow(/at most 160000/);
  });

  it('needs 9 MB', () => {
    expect(kernel.memoryBytes()).toBeLessThan(9.5e6);
  });
});
