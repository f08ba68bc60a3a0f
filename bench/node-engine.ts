import { readFileSync } from 'node:fs';
import { nodeDsp } from '../client/audio/ports.ts';
import type { Engine } from '../src/jobs/job-ports.ts';
import { createEmbedding, type EmbeddingModel } from '../src/platform/onnx/embedding.ts';
import { type EmbeddingEntry, segmentationFile } from '../src/platform/onnx/manifest.ts';
import { createOnnxRuntime, type OnnxRuntime } from '../src/platform/onnx/runtime.ts';
import { createSegmentation } from '../src/platform/onnx/segmentation.ts';
import { packaged, unshared } from '../wasm/onnxruntime/unshare.mjs';
import { type MeasuredPack, readModel } from './packs.ts';

let runtime: OnnxRuntime | undefined;
/** The service's models and signal processing in this process: the same WebAssembly and the same code as in workerd. */
export async function nodeEngine({ pack }: MeasuredPack): Promise<Engine> {
  runtime ??= createOnnxRuntime(new WebAssembly.Module(unshared(readFileSync(packaged()))));
  const dspOfProcess = nodeDsp();
  const ort = runtime;
  return {
    segmentation: await createSegmentation(ort, readModel(segmentationFile(pack.segmentation)), pack.segmentation),
    embedding: await createEmbedding(ort, readEmbedder(pack.embedding), pack.embedding),
    filterbank: dspOfProcess.filterbank,
    melPower: dspOfProcess.melPower,
    pooling: dspOfProcess.pooling,
    memoryBytes: () => ort.memoryBytes() + dspOfProcess.memoryBytes(),
  };
}

function readEmbedder(entry: EmbeddingEntry): EmbeddingModel {
  if (entry.form === 'whole') return { form: 'whole', model: readModel(entry.files.model) };
  return { form: 'split', trunk: readModel(entry.files.trunk), head: readModel(entry.files.head) };
}
