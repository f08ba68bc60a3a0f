import { readFileSync } from 'node:fs';
import { createOnnxRuntime, floatTensor } from '../src/platform/onnx/runtime.ts';
import { packaged, unshared } from '../wasm/onnxruntime/unshare.mjs';

/**
 * Time and WebAssembly memory of one model on a batch of inputs of ten seconds. It runs in a separate process, because
 * the memory never shrinks and would include that of an earlier model. Prints JSON.
 *
 *     tsx bench/model-cost.ts FILE segmentation|powers|embedding [BATCH]
 */
const RUNS = 40;
const WARM_UP = 5;
const SEGMENTATION_SAMPLES = 160_000;
const POWER_FRAMES = 1000;
const POWER_BANDS = 64;
const EMBEDDING_FRAMES = 998;
const MEL_BANDS = 80;

const [file, kind, batchText = '1'] = process.argv.slice(2);
const batch = Number(batchText);
const runtime = createOnnxRuntime(new WebAssembly.Module(unshared(readFileSync(packaged()))));
const session = await runtime.createSession(readFileSync(file));

/** A fixed tone in noise, which avoids the slow denormal numbers of silence. */
function signal(length: number): Float32Array {
  let state = 1;
  return Float32Array.from({ length }, (_, index) => {
    state = (state * 48271) % 2147483647;
    return 0.1 * Math.sin(index / 20) + 0.05 * (state / 2147483647 - 0.5);
  });
}

const name = session.inputNames[0];
const shapes: Record<string, readonly number[]> = {
  segmentation: [batch, 1, SEGMENTATION_SAMPLES],
  powers: [batch, POWER_FRAMES, POWER_BANDS],
  embedding: [batch, EMBEDDING_FRAMES, MEL_BANDS],
};
const shape = shapes[kind];
const values = signal(shape.reduce((product, size) => product * size, 1));
const input = floatTensor(kind === 'powers' ? values.map((value) => value * value) : values, shape);
const times: number[] = [];
for (let run = 0; run < WARM_UP + RUNS; run++) {
  const from = performance.now();
  await session.run({ [name]: input });
  if (run >= WARM_UP) times.push(performance.now() - from);
}
times.sort((a, b) => a - b);
const cost = { medianMs: times[RUNS / 2], fastestMs: times[0], memoryBytes: runtime.memoryBytes() };
process.stdout.write(`${JSON.stringify(cost)}\n`);
