import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { projectDir } from '../client/local/paths.ts';
import { modelPath, readManifest } from '../client/models/store.ts';
import { type Plda, parsePlda } from '../src/diarization/clustering/plda.ts';
import type { SettingName } from '../src/diarization/parameters.ts';
import { type ModelFile, type ModelPack, packInUse, segmentationOf } from '../src/platform/onnx/manifest.ts';
import { sharedPath } from './shared.ts';

/** A pack that is measured, and what the tables call it. */
export interface MeasuredPack {
  readonly label: string;
  readonly pack: ModelPack;
}

const REFERENCE_FILE = 'segmentation-3.0.int8.onnx';

/** The pack in use, with the segmentation of a setting; live streams use that of community-1. */
export function packOfService(setting: SettingName = 'precision-2'): MeasuredPack {
  const pack = packInUse(readManifest(projectDir));
  const segmentation = segmentationOf(pack, setting);
  return { label: segmentation.id, pack: { name: pack.name, segmentation, embedding: pack.embedding } };
}

/** Path of a model file: in the repository, pulled, or beside the checkout. */
export function findModel(file: ModelFile): string | undefined {
  const own = modelPath(projectDir, file);
  if (existsSync(own)) return own;
  return sharedPath('models', basename(file.path)) ?? sharedPath('weights', basename(file.path));
}

/** @throws when the file is missing or not the one of the manifest */
export function readModel(file: ModelFile): Uint8Array {
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
 * Models for sherpa-onnx: segmentation-3.0 in 8 bits (`../shared/models`), and CAM++ in floating point, the file that
 * `ROLLCALL_CAMPPLUS` names (`training/embedder/teacher_onnx.py` writes it).
 *
 * @returns paths, undefined where one of the two files is missing
 */
export function sherpaModels(): { segmentation: string; embedder: string } | undefined {
  const segmentation = sharedPath('models', REFERENCE_FILE);
  const embedder = process.env.ROLLCALL_CAMPPLUS;
  return segmentation && embedder ? { segmentation, embedder } : undefined;
}
