import { readFileSync } from 'node:fs';
import { floatTensor } from '../src/platform/onnx/runtime.ts';
import { nodeRuntimes } from './pipeline.ts';

/**
 * Time and WebAssembly memory of one model on a batch of inputs of ten seconds. It runs in a separate process, because
 * the memory never shrinks and would include that of an earlier model. Prints JSON.
 *
 *     tsx bench/model-cost.ts FILE segmentation|trunk [BATCH]
 *     tsx bench/model-cost.ts FILE segmentation-kernel|powers-kernel|trunk-kernel
 */
const RUNS = 40;
const WARM_UP = 5;
const SEGMENTATION_SAMPLES = 160_000;
const POWER_FRAMES = 1000;
const POWER_BANDS = 64;
const TRUNK_FRAMES = 998;
const MEL_BANDS = 80;

const [file, kind, batchText = '1'] = process.argv.slice(2);
const batch = Number(batchText);
const runtimes = nodeRuntimes();

/** A fixed tone in noise, which avoids the slow denormal numbers of silence. */
function signal(length: number): Float32Array {
  let state = 1;
  return Float32Array.from({ length }, (_, index) => {
    state = (state * 48271) % 2147483647;
    return 0.1 * Math.sin(index / 20) + 0.05 * (state / 2147483647 - 0.5);
  });
}

/** Opens the model. @returns one run of it */
async function open(model: Uint8Array): Promise<() => Promise<unknown>> {
  const noPause = async () => undefined;
  switch (kind) {
    case 'segmentation-kernel': {
      const { run } = runtimes.segmentationKernel(model, noPause);
      const samples = signal(SEGMENTATION_SAMPLES);
      return () => run(samples);
    }
    case 'powers-kernel': {
      const { run } = runtimes.segmentationV8Kernel(model, noPause);
      const powers = signal(POWER_FRAMES * POWER_BANDS).map((value) => value * value);
      return () => run(powers, POWER_FRAMES);
    }
    case 'trunk-kernel': {
      const { trunk } = runtimes.trunkKernel(model, noPause);
      const feats = signal(TRUNK_FRAMES * MEL_BANDS);
      return () => trunk(feats, TRUNK_FRAMES);
    }
  }
  const shapes: Record<string, readonly number[]> = {
    segmentation: [batch, 1, SEGMENTATION_SAMPLES],
    trunk: [batch, TRUNK_FRAMES, MEL_BANDS],
  };
  const shape = shapes[kind];
  const session = await runtimes.onnx.createSession(model);
  const [name] = session.inputNames;
  const input = floatTensor(signal(shape.reduce((product, size) => product * size, 1)), shape);
  return () => session.run({ [name]: input });
}

const run = await open(readFileSync(file));
const times: number[] = [];
for (let index = 0; index < WARM_UP + RUNS; index++) {
  const from = performance.now();
  await run();
  if (index >= WARM_UP) times.push(performance.now() - from);
}
times.sort((a, b) => a - b);
const cost = { medianMs: times[RUNS / 2], fastestMs: times[0], memoryBytes: runtimes.memoryBytes() };
process.stdout.write(`${JSON.stringify(cost)}\n`);
