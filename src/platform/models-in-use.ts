import manifestJson from '../../models/manifest.json';
import { type ModelPack, packInUse, parseManifest, segmentationFile, segmentationsOf } from './onnx/manifest.ts';

let pack: ModelPack | undefined;

/** The pack that this build of the service runs. */
export function packOfBuild(): ModelPack {
  pack ??= packInUse(parseManifest(manifestJson));
  return pack;
}

/**
 * Short name of the models that make a pack's parts, 24 to 40 hexadecimal digits: it changes with the files, facts and
 * parameters of the segmentation models and the embedder.
 */
export function nameOfModels(pack: ModelPack): string {
  const { embedding } = pack;
  const segmentations = segmentationsOf(pack);
  const { form, files } = embedding;
  const embedder = form === 'split' ? [files.trunk, files.head] : [files.model];
  const weights = [...segmentations.map(segmentationFile), ...embedder].map(({ sha256 }) => sha256.slice(0, 8));
  const parameters = [...segmentations, embedding].map(({ facts, tuned }) => ({ facts, tuned }));
  return [...weights, fnv1a(JSON.stringify(parameters))].join('');
}

/** Fowler, Noll and Vo's hash of a text's UTF-16 units, 32 bits in hexadecimal: what is at hand without waiting. */
function fnv1a(text: string): string {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return (hash >>> 0).toString(16).padStart(8, '0');
}
