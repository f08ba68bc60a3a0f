import { toHex } from '../audio/bytes.ts';
import { type Plda, parsePlda } from '../diarization/clustering/plda.ts';
import type { EmbeddingPort, SegmentationPort } from '../diarization/model-ports.ts';
import type { SettingName } from '../diarization/parameters.ts';
import type { Engine } from '../jobs/job-ports.ts';
import { Loaded } from './loaded.ts';
import { packOfBuild } from './models-in-use.ts';
import {
  type EmbeddingEntry,
  type ModelFile,
  type SegmentationEntry,
  segmentationFile,
  segmentationOf,
} from './onnx/manifest.ts';
import { createOnnxRuntime, type OnnxRuntime } from './onnx/runtime.ts';
import { createEmbedding, createSegmentation, type EmbeddingModel } from './onnx/sessions.ts';
import ortModule from './onnx/wasm-module.ts';
import type { Dsp } from './wasm/dsp.ts';

let runtime: OnnxRuntime | undefined;
const embedding = new Loaded<EmbeddingPort>();
/** Segmentations by the hash of their file: settings may share a model. */
const segmentations = new Map<string, Loaded<SegmentationPort>>();

/**
 * Models of the pack in use, loaded from R2 once per isolate and shared by all its jobs and streams. A segmentation is
 * loaded with the first job or stream that needs it.
 *
 * @param setting determines the segmentation; live streams use that of community-1
 * @param pause called between the runs of one analysis, and while models are loaded
 * @throws if a model file is missing in R2 or does not have the hash of the manifest
 */
export async function loadEngine(
  bucket: R2Bucket,
  dsp: Dsp,
  setting: SettingName,
  pause: () => Promise<void>,
): Promise<Engine> {
  const pack = packOfBuild();
  runtime ??= createOnnxRuntime(ortModule);
  const ort = runtime;
  // Load one after the other, so that only one file is in memory at a time.
  const segmentation = await loadSegmentation(bucket, ort, segmentationOf(pack, setting), pause);
  const embedder = await embedding.get(async () => {
    // Creating a session holds the thread for about a second.
    await pause();
    return createEmbedding(ort, await readEmbedder(bucket, pack.embedding), pack.embedding, pause);
  });
  return {
    segmentation,
    embedding: embedder,
    filterbank: dsp.filterbank,
    melPower: dsp.melPower,
    pooling: dsp.pooling,
    memoryBytes: () => ort.memoryBytes() + dsp.memoryBytes(),
  };
}

function loadSegmentation(
  bucket: R2Bucket,
  ort: OnnxRuntime,
  entry: SegmentationEntry,
  pause: () => Promise<void>,
): Promise<SegmentationPort> {
  const file = segmentationFile(entry);
  let loaded = segmentations.get(file.sha256);
  if (loaded === undefined) {
    loaded = new Loaded();
    segmentations.set(file.sha256, loaded);
  }
  return loaded.get(async () => createSegmentation(ort, await readModel(bucket, file), entry, pause));
}

const plda = new Loaded<Plda | undefined>();

/**
 * The PLDA of the embedder in use, loaded once per isolate. Undefined if the pack has none, or for another embedder:
 * the models may have changed since the parts of a job were analysed.
 *
 * @throws if the file is missing in R2, damaged, or for another embedder than that of the pack
 */
export async function loadPlda(bucket: R2Bucket, embeddingId: string): Promise<Plda | undefined> {
  const loaded = await plda.get(() => readPlda(bucket));
  return loaded?.embedding === embeddingId ? loaded : undefined;
}

async function readPlda(bucket: R2Bucket): Promise<Plda | undefined> {
  const { id, files } = packOfBuild().embedding;
  if (files.plda === undefined) return undefined;
  const read = parsePlda(JSON.parse(new TextDecoder().decode(await readModel(bucket, files.plda))));
  if (read.embedding !== id) throw new Error(`model ${files.plda.path} is for ${read.embedding}, not for ${id}`);
  return read;
}

async function readEmbedder(bucket: R2Bucket, entry: EmbeddingEntry): Promise<EmbeddingModel> {
  if (entry.form === 'whole') return { form: 'whole', model: await readModel(bucket, entry.files.model) };
  return {
    form: 'split',
    trunk: await readModel(bucket, entry.files.trunk),
    head: await readModel(bucket, entry.files.head),
  };
}

async function readModel(bucket: R2Bucket, file: ModelFile): Promise<Uint8Array> {
  const object = await bucket.get(`models/${file.sha256}`);
  if (!object) throw new Error(`model ${file.path} has not been uploaded: run "npm run deploy" or "npm start"`);
  const bytes = new Uint8Array(await object.arrayBuffer());
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
  const hex = toHex(digest);
  if (hex !== file.sha256) throw new Error(`model ${file.path} in R2 is damaged: its SHA-256 is ${hex}`);
  return bytes;
}
