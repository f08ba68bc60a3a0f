import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { moduleAt, nodeDsp } from '../client/audio/ports.ts';
import { projectDir } from '../client/local/paths.ts';
import { modelPath, readManifest } from '../client/models/store.ts';
import type { DiarizeOutput } from '../client/sdk/types.ts';
import { SAMPLE_RATE_HZ } from '../src/audio/audio-ports.ts';
import { assemble, type SpeakerRequest } from '../src/diarization/assemble.ts';
import { type Plda, parsePlda } from '../src/diarization/clustering/plda.ts';
import { type Diarization, writeOutput } from '../src/diarization/diarization.ts';
import type { SegmentationPort } from '../src/diarization/model-ports.ts';
import type { DiarizationSettings, SettingName } from '../src/diarization/parameters.ts';
import { encodePart, openPart, type PartReader, partsOf } from '../src/diarization/part.ts';
import { type AnalysisPorts, analyseShard } from '../src/diarization/shard.ts';
import type { Engine } from '../src/jobs/job-ports.ts';
import { ModelRuntimes } from '../src/platform/model-runtimes.ts';
import {
  embeddingFiles,
  type ModelFile,
  type ModelPack,
  packInUse,
  segmentationFile,
  segmentationsFor,
  segmentationsOf,
} from '../src/platform/onnx/manifest.ts';
import { createOnnxRuntime } from '../src/platform/onnx/runtime.ts';
import { createEmbedding, createSegmentation } from '../src/platform/onnx/sessions.ts';
import { packaged, unshared } from '../wasm/onnxruntime/unshare.mjs';
import { cacheDir, sharedPath } from './shared.ts';

/** A pack to measure, with its name in the tables. */
export interface MeasuredPack {
  readonly label: string;
  readonly pack: ModelPack;
}

const REFERENCE_FILE = 'segmentation-3.0.int8.onnx';

/** The pack in use with the segmentation of a setting; live streams use that of community-1. */
export function packOfService(setting: SettingName = 'precision-2'): MeasuredPack {
  const { name, embedding, ...pack } = packInUse(readManifest(projectDir));
  const [segmentation, fastSegmentation] = segmentationsFor({ name, embedding, ...pack }, setting);
  const label = [segmentation, ...(fastSegmentation ? [fastSegmentation] : [])].map(({ id }) => id).join(' and ');
  return { label, pack: { name, segmentation, ...(fastSegmentation && { fastSegmentation }), embedding } };
}

/** Path of a model file: in the repository, pulled, or beside the checkout. */
function findModel(file: ModelFile): string | undefined {
  const own = modelPath(projectDir, file);
  if (existsSync(own)) return own;
  return sharedPath('models', basename(file.path)) ?? sharedPath('weights', basename(file.path));
}

/** @throws Error if the file is missing or its checksum is not that of the manifest */
function readModel(file: ModelFile): Uint8Array {
  const path = findModel(file);
  if (!path) throw new Error(`models/${file.path} is missing`);
  const bytes = readFileSync(path);
  if (createHash('sha256').update(bytes).digest('hex') !== file.sha256) {
    throw new Error(`${path} is not the file that the manifest names`);
  }
  return bytes;
}

/** The PLDA of the pack's embedder, if it has one. */
export function pldaOf({ pack }: MeasuredPack): Plda | undefined {
  const { plda } = pack.embedding.files;
  return plda && parsePlda(JSON.parse(new TextDecoder().decode(readModel(plda))));
}

/**
 * Models for sherpa-onnx: segmentation-3.0 in 8 bits (`../shared/models`) and CAM++ in floating point, the file
 * `ROLLCALL_CAMPPLUS` (written by `training/embedder/teacher_onnx.py`).
 *
 * @returns paths; undefined if one of the files is missing
 */
export function sherpaModels(): { segmentation: string; embedder: string } | undefined {
  const segmentation = sharedPath('models', REFERENCE_FILE);
  const embedder = process.env.ROLLCALL_CAMPPLUS;
  return segmentation && embedder ? { segmentation, embedder } : undefined;
}

let runtimes: ModelRuntimes | undefined;
/** What runs models, in this process. */
export function nodeRuntimes(): ModelRuntimes {
  runtimes ??= new ModelRuntimes(createOnnxRuntime(new WebAssembly.Module(unshared(readFileSync(packaged())))), {
    segmentation: moduleAt(join(projectDir, 'wasm/networks/segmentation.wasm')),
    segmentationV8: moduleAt(join(projectDir, 'wasm/networks/segmentation-v8.wasm')),
    trunk: moduleAt(join(projectDir, 'wasm/networks/campplus.wasm')),
  });
  return runtimes;
}

/** The service's models and signal processing in this process: the WebAssembly and code that workerd runs. */
export async function nodeEngine({ pack }: MeasuredPack): Promise<Engine> {
  const models = nodeRuntimes();
  const dspOfProcess = nodeDsp();
  const segmentations: SegmentationPort[] = [];
  for (const entry of segmentationsOf(pack)) {
    segmentations.push(await createSegmentation(models, readModel(segmentationFile(entry)), entry));
  }
  const [segmentation, secondSegmentation] = segmentations;
  return {
    segmentation,
    secondSegmentation,
    embedding: await createEmbedding(models, embeddingFiles(pack.embedding).map(readModel), pack.embedding),
    filterbank: dspOfProcess.filterbank,
    melPower: dspOfProcess.melPower,
    pooling: dspOfProcess.pooling,
    memoryBytes: () => models.memoryBytes() + dspOfProcess.memoryBytes(),
  };
}

/** Every optional field of the output. */
export const ALL_FIELDS = {
  exclusive: true,
  confidence: true,
  turnLevelConfidence: true,
  speechProbability: true,
  crosstalkProbability: true,
  speakerProbability: true,
} as const;

const BLOCK_SAMPLES = SAMPLE_RATE_HZ;

async function* blocksOf(samples: Float32Array): AsyncGenerator<Float32Array> {
  for (let at = 0; at < samples.length; at += BLOCK_SAMPLES) yield samples.subarray(at, at + BLOCK_SAMPLES);
}

const noPause = async (): Promise<void> => undefined;

/** Runs the models over a recording as one shard. @returns its part in the stored form */
async function analysedBytes(
  samples: Float32Array,
  engine: AnalysisPorts,
  settings: DiarizationSettings,
): Promise<Uint8Array> {
  const shard = { startSample: 0, endSample: samples.length, totalSamples: samples.length };
  return encodePart(await analyseShard(blocksOf(samples), shard, engine, settings, noPause));
}

/** Runs the models over a recording as one shard. @returns its part */
export async function analyse(
  samples: Float32Array,
  engine: AnalysisPorts,
  settings: DiarizationSettings,
): Promise<PartReader> {
  const bytes = await analysedBytes(samples, engine, settings);
  return openPart(async (offset, length) => bytes.subarray(offset, offset + length));
}

/** The output document of a job on this part, with all optional fields; undefined without speech. */
export async function finish(
  part: PartReader,
  totalSamples: number,
  settings: DiarizationSettings,
  plda: Plda | undefined,
  request: SpeakerRequest = {},
): Promise<DiarizeOutput | undefined> {
  const parts = partsOf([part]);
  const result = await assemble(parts, { totalSamples }, settings, request, { pldaOf: async () => plda });
  return result.ok ? toOutput(result.value) : undefined;
}

/** The output document of a client. */
export async function toOutput(diarization: Diarization): Promise<DiarizeOutput> {
  const chunks: string[] = [];
  for await (const chunk of writeOutput(diarization, ALL_FIELDS)) chunks.push(chunk);
  return JSON.parse(chunks.join('')) as DiarizeOutput;
}

/** Cache key of the settings that influence the analysis. */
export function analysisOf({ windows, localSpeakers, subsegments }: DiarizationSettings): string {
  return JSON.stringify([windows, localSpeakers, subsegments.minCleanSeconds]);
}

/**
 * The part of a recording, from the cache if possible. The key covers the samples, the models and the settings that
 * influence the analysis.
 */
export async function keptPart(
  samples: Float32Array,
  engine: AnalysisPorts,
  { pack }: MeasuredPack,
  settings: DiarizationSettings,
): Promise<PartReader> {
  const digest = createHash('sha256')
    .update(JSON.stringify(pack))
    .update(analysisOf(settings))
    .update(samples)
    .digest('hex')
    .slice(0, 24);
  const folder = join(cacheDir(), 'parts');
  const path = join(folder, digest);
  if (!existsSync(path)) {
    mkdirSync(folder, { recursive: true });
    writeFileSync(`${path}.${process.pid}`, await analysedBytes(samples, engine, settings));
    renameSync(`${path}.${process.pid}`, path);
  }
  const bytes = readFileSync(path);
  return openPart(async (offset, length) => new Uint8Array(bytes.subarray(offset, offset + length)));
}
