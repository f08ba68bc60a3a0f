import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from 'vitest';
import { decodeFile } from '../../../client/audio/file.ts';
import { moduleAt, nodeAudio, nodeDsp } from '../../../client/audio/ports.ts';
import { packaged, unshared } from '../../../wasm/onnxruntime/unshare.mjs';
import { concatenated } from '../../audio/memory.ts';
import { raiseFloor, subtractMean } from '../../diarization/embedder.ts';
import type { TrunkOutput } from '../../diarization/model-ports.ts';
import { createOnnxRuntime, floatOutput, floatTensor } from '../onnx/runtime.ts';
import { createTrunkKernel, type TrunkKernel } from './networks.ts';

const BANDS = 80;
const STRETCH_SAMPLES = 160_000;
/** SHA-256 of the frames of `randomFeatures(998)`: the same in every engine and on every machine. */
const NOISE_SHA256 = '9fdd5501fe5beef52b839340ac6718002fedcfc28f939f621cbdfe4b638c01fe';

const file = (path: string) => new URL(`../../../${path}`, import.meta.url).pathname;
const model = (name: string) => readFileSync(file(`models/${name}`));
const module = moduleAt(file('wasm/networks/campplus.wasm'));
const weights = model('embedder-v6-trunk.weights');
const noPause = async () => undefined;

let kernel: TrunkKernel;
/** The same network in floating point: feats [frames, 80] → [frames / 2, 512]. */
let reference: (feats: Float32Array) => Promise<Float32Array>;
let embed: (frames: Float32Array) => Promise<Float32Array>;
let speech: Float32Array;

beforeAll(async () => {
  kernel = createTrunkKernel(module, weights, noPause);
  const runtime = createOnnxRuntime(new WebAssembly.Module(unshared(readFileSync(packaged()))));
  const trunk = await runtime.createSession(model('embedder-v6-trunk.onnx'));
  const head = await runtime.createSession(model('embedder-v6-head.onnx'));
  reference = async (feats) => {
    const outputs = await trunk.run({ feats: floatTensor(feats, [1, feats.length / BANDS, BANDS]) });
    return floatOutput(outputs, 'frames').data;
  };
  embed = async (frames) => {
    const output: TrunkOutput = { frames, frameCount: frames.length / 512, channels: 512 };
    const mask = new Uint8Array(output.frameCount).fill(1);
    const pooled = nodeDsp().pooling.pool([{ trunk: output, mask }])!;
    return floatOutput(await head.run({ pooled: floatTensor(pooled, [1, pooled.length]) }), 'embs').data;
  };
  speech = await decodeFile(file('test/fixtures/conversation.mp3'), nodeAudio());
});

function features(samples: Float32Array): Float32Array {
  const feats = nodeDsp().filterbank.compute(samples).slice();
  raiseFloor(feats, 10);
  subtractMean(feats);
  return feats;
}

/** Even noise in ±8 nats, from a linear congruential generator. */
function randomFeatures(frames: number): Float32Array {
  let state = 1;
  return new Float32Array(frames * BANDS).map(() => {
    state = (Math.imul(state, 1664525) + 1013904223) | 0;
    return state / 2 ** 28;
  });
}

function sha256({ buffer, byteOffset, byteLength }: Float32Array | Uint8Array): string {
  return createHash('sha256')
    .update(new Uint8Array(buffer, byteOffset, byteLength))
    .digest('hex');
}

function cosine(a: Float32Array, b: Float32Array): number {
  const product = (x: Float32Array, y: Float32Array) => x.reduce((sum, value, index) => sum + value * y[index], 0);
  return product(a, b) / Math.sqrt(product(a, a) * product(b, b));
}

const run = async (feats: Float32Array) => (await kernel.trunk(feats, feats.length / BANDS)).frames;

/** Cosine between the embeddings of kernel and reference. */
async function agreement(feats: Float32Array): Promise<number> {
  const [frames, expected] = [await run(feats), await reference(feats)];
  expect(frames.length).toBe(expected.length);
  return cosine(await embed(frames), await embed(expected));
}

describe("the kernel of CAM++'s trunk", () => {
  it('agrees with the ONNX file on speech, in stretches of 10 s and pieces of 1.5 s', async () => {
    for (const start of [0, STRETCH_SAMPLES]) {
      const feats = features(speech.subarray(start, start + STRETCH_SAMPLES));
      const [frames, expected] = [await run(feats), await reference(feats)];
      expect(cosine(await embed(frames), await embed(expected))).toBeGreaterThan(0.9998);
      for (let from = 0; from + 75 <= 499; from += 60) {
        const piece = [from * 512, (from + 75) * 512] as const;
        const [short, expectedShort] = [frames.slice(...piece), expected.slice(...piece)];
        expect(cosine(await embed(short), await embed(expectedShort))).toBeGreaterThan(0.9996);
      }
    }
  });

  it('agrees on other levels, clicks, silence and constants', async () => {
    const second = speech.slice(40_000, 72_000);
    const clicks = second.map((sample, index) => (index % 4000 === 0 ? 1 : sample));
    expect(await agreement(features(second.map((sample) => sample / 1000)))).toBeGreaterThan(0.999);
    expect(await agreement(features(second.map((sample) => Math.max(-1, Math.min(1, 20 * sample)))))).toBeGreaterThan(
      0.999,
    );
    expect(await agreement(features(clicks))).toBeGreaterThan(0.999);
    expect(await agreement(features(new Float32Array(16_000)))).toBeGreaterThan(0.999);
    expect(await agreement(features(new Float32Array(16_000).fill(0.5)))).toBeGreaterThan(0.999);
    // Features of three nats above their mean everywhere: no audio has them.
    expect(await agreement(new Float32Array(100 * BANDS).fill(3))).toBeGreaterThan(0.99);
  });

  it('agrees on short and odd lengths, after longer stretches', async () => {
    const feats = features(speech.subarray(0, 48_000));
    for (const frames of [1, 2, 3, 5, 8, 99, 200, 201]) {
      expect(await agreement(feats.slice(0, frames * BANDS))).toBeGreaterThan(0.998);
    }
  });

  it('gives the same bits in every engine, also after other input', async () => {
    const noise = randomFeatures(998);
    expect(sha256(await run(noise))).toBe(NOISE_SHA256);
    await run(new Float32Array(997 * BANDS).fill(40));
    expect(sha256(await run(noise))).toBe(NOISE_SHA256);
  });

  it('returns all frames of a stream but the last four, with the bits of a stretch', async () => {
    const feats = features(speech.subarray(0, 32_000));
    const stretch = await kernel.trunk(feats, 198);
    const first = await kernel.continueTrunk(feats, 198, undefined);
    expect(first.frameCount).toBe(stretch.frameCount - 4);
    expect(first.frames).toEqual(stretch.frames.subarray(0, first.frames.length));
  });

  it('continues a stream frame for frame, whatever else it computes in between', async () => {
    const feats = features(speech.subarray(0, STRETCH_SAMPLES));
    const next = (at: number, state: Uint8Array | undefined) =>
      kernel.continueTrunk(feats.slice(at * BANDS, (at + 50) * BANDS), 50, state);
    const alone = [await next(0, undefined)];
    for (let at = 50; at < 500; at += 50) alone.push(await next(at, alone.at(-1)!.state));
    let state: Uint8Array | undefined;
    for (const [run, expected] of alone.entries()) {
      const output = await next(50 * run, state);
      expect(sha256(output.frames)).toBe(sha256(expected.frames));
      expect(sha256(output.state)).toBe(sha256(expected.state));
      state = output.state;
      await kernel.trunk(feats, 300);
    }
    const frames = concatenated(
      Float32Array,
      alone.map((output) => output.frames),
    );
    expect(frames.length).toBe((500 / 2 - 4) * 512);
    const whole = (await kernel.trunk(feats.slice(0, 500 * BANDS), 500)).frames.slice(0, frames.length);
    // The context of a frame is half a second, not the stretch.
    expect(cosine(await embed(frames), await embed(whole))).toBeGreaterThan(0.85);
  });

  it('waits for enough features at the start of a stream', async () => {
    const feats = randomFeatures(20);
    const first = await kernel.continueTrunk(feats.slice(0, 2 * BANDS), 2, undefined);
    const second = await kernel.continueTrunk(feats.slice(2 * BANDS), 18, first.state);
    expect([first.frameCount, second.frameCount]).toEqual([0, 6]);
    expect(second.frames).toEqual((await kernel.continueTrunk(feats, 20, undefined)).frames);
    await expect(kernel.continueTrunk(new Float32Array(993 * BANDS), 993, undefined)).rejects.toThrow(RangeError);
  });

  it('refuses stretches without frames and above 10 s', async () => {
    await expect(kernel.trunk(new Float32Array(0), 0)).rejects.toThrow(RangeError);
    await expect(kernel.trunk(new Float32Array(1001 * BANDS), 1001)).rejects.toThrow(/at most 1000/);
  });

  it('needs 21 MB', () => {
    expect(kernel.memoryBytes()).toBeLessThan(21e6);
  });
});
