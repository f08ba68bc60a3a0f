import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { moduleAt } from '../../client/audio/ports.ts';
import { projectDir } from '../../client/local/paths.ts';
import { ModelRuntimes } from './model-runtimes.ts';
import type { OnnxRuntime } from './onnx/runtime.ts';

const ONNX_BYTES = 1000;
const onnx: OnnxRuntime = {
  createSession: () => Promise.reject(new Error('not needed here')),
  memoryBytes: () => ONNX_BYTES,
};
const modules = {
  segmentation: moduleAt(join(projectDir, 'wasm/networks/segmentation.wasm')),
  segmentationV8: moduleAt(join(projectDir, 'wasm/networks/segmentation-v8.wasm')),
  trunk: moduleAt(join(projectDir, 'wasm/networks/campplus.wasm')),
};
const weights = (name: string) => readFileSync(join(projectDir, 'models', name));
const noPause = async () => undefined;

it('adds the memory of ONNX Runtime and of every kernel', () => {
  const runtimes = new ModelRuntimes(onnx, modules);
  expect(runtimes.memoryBytes()).toBe(ONNX_BYTES);
  const segmentation = runtimes.segmentationKernel(weights('segmentation-3.0.weights'), noPause);
  expect(runtimes.memoryBytes()).toBe(ONNX_BYTES + segmentation.memoryBytes());
  const fast = runtimes.segmentationV8Kernel(weights('segmentation-v8.weights'), noPause);
  const trunk = runtimes.trunkKernel(weights('embedder-v6-trunk.weights'), noPause);
  const all = segmentation.memoryBytes() + fast.memoryBytes() + trunk.memoryBytes();
  expect(runtimes.memoryBytes()).toBe(ONNX_BYTES + all);
});

it('keeps nothing of a kernel whose weights are those of another network', () => {
  const runtimes = new ModelRuntimes(onnx, modules);
  expect(() => runtimes.trunkKernel(weights('segmentation-3.0.weights'), noPause)).toThrow(
    "not the weights of CAM++'s trunk",
  );
  expect(() => runtimes.segmentationKernel(new Uint8Array(20), noPause)).toThrow('not the weights of segmentation-3.0');
  expect(runtimes.memoryBytes()).toBe(ONNX_BYTES);
});

it('calls the pause of its caller between the steps of a kernel', async () => {
  let pauses = 0;
  const pause = async () => {
    pauses++;
  };
  const runtimes = new ModelRuntimes(onnx, modules);
  const { run } = runtimes.segmentationKernel(weights('segmentation-3.0.weights'), pause);
  await run(new Float32Array(16_000));
  const ofSegmentation = pauses;
  expect(ofSegmentation).toBeGreaterThan(2);
  await runtimes.trunkKernel(weights('embedder-v6-trunk.weights'), pause).trunk(new Float32Array(100 * 80), 100);
  expect(pauses - ofSegmentation).toBeGreaterThan(5);
});
