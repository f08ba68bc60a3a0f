import manifestJson from '../../models/manifest.json';
import { type ModelPack, packInUse, parseManifest, segmentationFile } from './onnx/manifest.ts';

let pack: ModelPack | undefined;

/** The pack that this build of the service runs. */
export function packOfBuild(): ModelPack {
  pack ??= packInUse(parseManifest(manifestJson));
  return pack;
}

/** A short name for a pack's weights, 16 or 24 hexadecimal digits: another for every other file of the segmentation or the embedder. */
export function nameOfModels({ segmentation, embedding }: ModelPack): string {
  const { form, files } = embedding;
  const embedder = form === 'split' ? [files.trunk, files.head] : [files.model];
  return [segmentationFile(segmentation), ...embedder].map(({ sha256 }) => sha256.slice(0, 8)).join('');
}
