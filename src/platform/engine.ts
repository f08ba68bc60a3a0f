import trunkModule from '../../wasm/networks/campplus.wasm';
import segmentationModule from '../../wasm/networks/segmentation.wasm';
import segmentationV8Module from '../../wasm/networks/segmentation-v8.wasm';
import { toHex } from '../audio/bytes.ts';
import { type Plda, parsePlda } from '../diarization/clustering/plda.ts';
import type { EmbeddingPort, SegmentationPort } from '../diarization/model-ports.ts';
import type { SettingName } from '../diarization/parameters.ts';
import type { Engine } from '../jobs/job-ports.ts';
import { Loaded } from './loaded.ts';
import { ModelRuntimes } from './model-runtimes.ts';
import { packOfBuild } from './models-in-use.ts';
import {
  embeddingFiles,
  type ModelFile,
  type SegmentationEntry,
  segmentationFile,
  segmentationsFor,
} from './onnx/manifest.ts';
import { createOnnxRuntime } from './onnx/runtime.ts';
import { createEmbedding, createSegmentation } from './onnx/sessions.ts';
import ortModule from './onnx/wasm-module.ts';
import type { Dsp } from './wasm/dsp.ts';

let shared: ModelRuntimes | undefined;
const embedding = new Loaded<EmbeddingPort>();
/** Segmentations by the hash of their file: settings may share a model. */
const segmentations = new Map<string, Loaded<SegmentationPort>>();

/**
 * Models of the pack in use, loaded from R2 once per isolate and shared by all its jobs and streams. A segmentation is
 * loaded with the first job or stream that needs it.
 *
 * @param setting determines the segmentations; live streams use that of community-1
 * @param pause called between the steps of an analysis, and while models are loaded
 * @throws if a model file is missing in R2 or does not have the hash of the manifest
 */
export async function loadEngine(
  bucket: R2Bucket,
  dsp: Dsp,
  setting: SettingName,
  pause: () => Promise<void>,
): Promise<Engine> {
  const pack = packOfBuild();
  shared ??= new ModelRuntimes(createOnnxRuntime(ortModule), {
    segmentation: segmentationModule,
    segmentationV8: segmentationV8Module,
    trunk: trunkModule,
  });
  const runtimes = shared;
  // Load one after the other, so that only one file is in memory at a time.
  const heard: SegmentationPort[] = [];
  for (const entry of segmentationsFor(pack, setting))
    heard.push(await loadSegmentation(bucket, runtimes, entry, pause));
  const [segmentation, secondSegmentation] = heard;
  const embedder = await embedding.get(async () => {
    const files: Uint8Array[] = [];
    for (const file of embeddingFiles(pack.embedding)) files.push(await readModel(bucket, file));
    // Creating a session holds the thread for some hundred milliseconds.
    await pause();
    return createEmbedding(runtimes, files, pack.embedding, pause);
  });
  return {
    segmentation,
    secondSegmentation,
    embedding: embedder,
    filterbank: dsp.filterbank,
    melPower: dsp.melPower,
    pooling: dsp.pooling,
    memoryBytes: () => runtimes.memoryBytes() + dsp.memoryBytes(),
  };
}

function loadSegmentation(
  bucket: R2Bucket,
  runtimes: ModelRuntimes,
  entry: SegmentationEntry,
  pause: () => Promise<void>,
): Promise<SegmentationPort> {
  const file = segmentationFile(entry);
  let loaded = segmentations.get(file.sha256);
  if (loaded === undefined) {
    loaded = new Loaded();
    segmentations.set(file.sha256, loaded);
  }
  return loaded.get(async () => createSegmentation(runtimes, await readModel(bucket, file), entry, pause));
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

async function readModel(bucket: R2Bucket, file: ModelFile): Promise<Uint8Array> {
  const object = await bucket.get(`models/${file.sha256}`);
  if (!object) throw new Error(`model ${file.path} has not been uploaded: run "npm run deploy" or "npm start"`);
  const bytes = new Uint8Array(await object.arrayBuffer());
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
  const hex = toHex(digest);
  if (hex !== file.sha256) throw new Error(`model ${file.path} in R2 is damaged: its SHA-256 is ${hex}`);
  return bytes;
}
