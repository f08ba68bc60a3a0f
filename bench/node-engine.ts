import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { projectDir } from '../client/local/paths.ts';
import type { AudioPorts } from '../src/audio/index.ts';
import type { Engine } from '../src/jobs/ports.ts';
import { createEmbedding, type EmbeddingModel } from '../src/platform/onnx/embedding.ts';
import type { EmbeddingEntry } from '../src/platform/onnx/manifest.ts';
import { createOnnxRuntime, type OnnxRuntime } from '../src/platform/onnx/runtime.ts';
import { createSegmentation } from '../src/platform/onnx/segmentation.ts';
import { createDecoders, type Decoders } from '../src/platform/wasm/codecs.ts';
import { createDsp, type Dsp } from '../src/platform/wasm/dsp.ts';
import { type MeasuredPack, readModel } from './packs.ts';

let runtime: OnnxRuntime | undefined;
let dsp: Dsp | undefined;
let decoders: Decoders | undefined;

const moduleAt = (path: string): WebAssembly.Module => new WebAssembly.Module(readFileSync(path));

function sharedDsp(): Dsp {
  dsp ??= createDsp(moduleAt(join(projectDir, 'wasm/dsp/dsp.wasm')));
  return dsp;
}

/** The service's decoders and resampler, in this process. */
export function nodeAudio(): AudioPorts {
  decoders ??= createDecoders(moduleAt(join(projectDir, 'wasm/codecs/codecs.wasm')));
  return { decoder: decoders, resampler: sharedDsp().resampler };
}

/** WebAssembly memory of the decoders of this process after all that they have decoded so far, bytes. */
export function decoderBytes(): number {
  return decoders?.memoryBytes() ?? 0;
}

/** The service's models and signal processing in this process: the same WebAssembly and the same code as in workerd. */
export async function nodeEngine({ pack }: MeasuredPack): Promise<Engine> {
  const ortWasm = createRequire(import.meta.url).resolve('onnxruntime-web/ort-wasm-simd-threaded.wasm');
  runtime ??= createOnnxRuntime(moduleAt(ortWasm));
  const dspOfProcess = sharedDsp();
  const ort = runtime;
  return {
    segmentation: await createSegmentation(ort, readModel(pack.segmentation.files.model), pack.segmentation),
    embedding: await createEmbedding(ort, readEmbedder(pack.embedding), pack.embedding),
    filterbank: dspOfProcess.filterbank,
    pooling: dspOfProcess.pooling,
    memoryBytes: () => ort.memoryBytes() + dspOfProcess.memoryBytes(),
  };
}

function readEmbedder(entry: EmbeddingEntry): EmbeddingModel {
  if (entry.form === 'whole') return { form: 'whole', model: readModel(entry.files.model) };
  return { form: 'split', trunk: readModel(entry.files.trunk), head: readModel(entry.files.head) };
}
