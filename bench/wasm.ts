/**
 * Speed and memory of the WebAssembly adapters in Node, one thread: `npx tsx bench/wasm.ts` prints a Markdown table.
 * Decoding repeats the packets of fixtures in test/fixtures/audio; × means seconds of audio per second. The networks
 * run beside ONNX Runtime with their ONNX files; their figures are minimum and median of ten seconds.
 */
import { readFileSync } from 'node:fs';
import { cpus, loadavg } from 'node:os';
import type { CodecSpec } from '../src/audio/audio-ports.ts';
import { createOnnxRuntime, floatTensor } from '../src/platform/onnx/runtime.ts';
import { createDecoders } from '../src/platform/wasm/codecs.ts';
import { createDsp } from '../src/platform/wasm/dsp.ts';
import {
  createSegmentationKernel,
  createSegmentationV8Kernel,
  createTrunkKernel,
} from '../src/platform/wasm/networks.ts';
import { packaged, unshared } from '../wasm/onnxruntime/unshare.mjs';

const path = (name: string) => new URL(`../${name}`, import.meta.url);
const compile = (name: string) => new WebAssembly.Module(readFileSync(path(name)));
const megabytes = (bytes: number) => `${(bytes / 1048576).toFixed(2)} MiB`;

/** Milliseconds of the fastest of five runs after a warm-up. */
function fastest(run: () => void): number {
  run();
  let best = Number.POSITIVE_INFINITY;
  for (let i = 0; i < 5; i++) {
    const start = performance.now();
    run();
    best = Math.min(best, performance.now() - start);
  }
  return best;
}

function row(what: string, audioSeconds: number, run: () => void): void {
  console.log(`| ${what} | ${Math.round(audioSeconds / (fastest(run) / 1000))} × |`);
}

interface Case {
  readonly file: string;
  readonly codec: CodecSpec['codec'];
  readonly sampleRateHz: number;
  readonly channels: number;
  readonly packets: readonly (readonly [offset: number, size: number])[];
  readonly extraDataHex?: string;
}

function measureDecoders(): void {
  const decoders = createDecoders(compile('wasm/codecs/codecs.wasm'));
  const start = decoders.memoryBytes();
  const cases: Case[] = JSON.parse(readFileSync(path('test/fixtures/audio/codec_cases.json'), 'utf8'));
  for (const { file, packets, extraDataHex, ...spec } of cases) {
    const bytes = readFileSync(path(`test/fixtures/audio/${file}`));
    const cut = packets.map(([offset, size]) => bytes.subarray(offset, offset + size));
    const extraData = extraDataHex === undefined ? undefined : Buffer.from(extraDataHex, 'hex');
    const decoder = decoders.open({ ...spec, extraData });
    const once = cut.reduce((total, packet) => total + decoder.decode(packet).length, 0) / spec.sampleRateHz;
    const repeats = Math.ceil(60 / once);
    row(`decode ${file} (${spec.sampleRateHz} Hz, ${spec.channels} ch) to mono`, once * repeats, () => {
      for (let i = 0; i < repeats; i++) for (const packet of cut) decoder.decode(packet);
    });
    decoder.close();
  }
  console.log(`| codecs.wasm memory, at start and after | ${megabytes(start)}, ${megabytes(decoders.memoryBytes())} |`);
}

function measureDsp(): void {
  const dsp = createDsp(compile('wasm/dsp/dsp.wasm'));
  const start = dsp.memoryBytes();
  const noise = Float32Array.from({ length: 160000 }, (_, i) => Math.sin(i * i));
  for (const rateHz of [8000, 11025, 22050, 44100, 44101, 48000, 96000, 192000]) {
    // The block size of jobs: seven frames of MP3.
    const block = noise.subarray(0, 8064);
    row(`resample ${rateHz} Hz to 16 kHz`, 60, () => {
      const resampler = dsp.resampler.open(rateHz, 0, 0);
      for (let done = 0; done < 60 * rateHz; done += block.length) resampler.push(block);
      resampler.close();
    });
  }
  row('filterbank, 10 s at a time', 60, () => {
    for (let i = 0; i < 6; i++) dsp.filterbank.compute(noise);
  });
  const [frameCount, channels] = [500, 512];
  const values = () => Float32Array.from({ length: frameCount * channels }, (_, i) => 2 + 2 * Math.sin(i * i));
  const trunk = { frames: values(), frameCount, channels };
  const mask = new Uint8Array(frameCount).fill(1);
  const time = fastest(() => {
    for (let i = 0; i < 50; i++) dsp.pooling.pool([{ trunk, mask }]);
  });
  console.log(`| pool ${frameCount} frames of ${channels} channels | ${(time / 50).toFixed(3)} ms |`);
  console.log(`| dsp.wasm memory, at start and after | ${megabytes(start)}, ${megabytes(dsp.memoryBytes())} |`);
}

/** Runs all in turn and prints minimum and median milliseconds of each, without its first three runs. */
async function compare(runs: readonly (readonly [name: string, run: () => Promise<unknown>])[]): Promise<void> {
  const times = runs.map((): number[] => []);
  for (let round = -3; round < 15; round++) {
    for (const [index, [, run]] of runs.entries()) {
      const start = performance.now();
      await run();
      if (round >= 0) times[index].push(performance.now() - start);
    }
  }
  for (const [index, [name]] of runs.entries()) {
    const sorted = times[index].sort((a, b) => a - b);
    console.log(`| ${name}, 10 s | ${sorted[0].toFixed(1)}, ${sorted[sorted.length >> 1].toFixed(1)} ms |`);
  }
}

async function measureNetworks(): Promise<void> {
  const runtime = createOnnxRuntime(new WebAssembly.Module(unshared(readFileSync(packaged()))));
  const model = (name: string) => readFileSync(path(`models/${name}`));
  const noPause = async () => undefined;
  const feats = Float32Array.from({ length: 998 * 80 }, (_, i) => 3 * Math.sin(i * i));
  const samples = Float32Array.from({ length: 160000 }, (_, i) => 0.1 * Math.sin(i * i));
  const trunk = createTrunkKernel(compile('wasm/networks/campplus.wasm'), model('embedder-v6-trunk.weights'), noPause);
  const segmentation = createSegmentationKernel(
    compile('wasm/networks/segmentation.wasm'),
    model('segmentation-3.0.weights'),
    noPause,
  );
  const segmentationV8 = createSegmentationV8Kernel(
    compile('wasm/networks/segmentation-v8.wasm'),
    model('segmentation-v8.weights'),
    noPause,
  );
  const powers = createDsp(compile('wasm/dsp/dsp.wasm')).melPower.compute(samples).slice();
  const trunkSession = await runtime.createSession(model('embedder-v6-trunk.onnx'));
  const v8Session = await runtime.createSession(model('segmentation-v8.onnx'));
  const segmentationSession = await runtime.createSession(model('segmentation-3.0.onnx'));
  await compare([
    ["CAM++'s trunk, kernel", () => trunk.trunk(feats, 998)],
    ["CAM++'s trunk, ONNX Runtime", () => trunkSession.run({ feats: floatTensor(feats, [1, 998, 80]) })],
  ]);
  await compare([
    ['segmentation-3.0, kernel', () => segmentation.run(samples)],
    ['segmentation-3.0, ONNX Runtime', () => segmentationSession.run({ x: floatTensor(samples, [1, 1, 160000]) })],
  ]);
  await compare([
    ['segmentation-v8, kernel', () => segmentationV8.run(powers, powers.length / 64)],
    [
      'segmentation-v8 with its front end, ONNX Runtime',
      () => v8Session.run({ x: floatTensor(samples, [1, 1, 160000]) }),
    ],
  ]);
  console.log(`| campplus.wasm memory, always | ${megabytes(trunk.memoryBytes())} |`);
  console.log(`| segmentation.wasm memory, always | ${megabytes(segmentation.memoryBytes())} |`);
  console.log(`| segmentation-v8.wasm memory, always | ${megabytes(segmentationV8.memoryBytes())} |`);
}

console.log(
  `${cpus()[0].model}, Node ${process.version}, load ${loadavg()[0].toFixed(1)}\n\n| what | figure |\n|---|---|`,
);
measureDecoders();
measureDsp();
await measureNetworks();
