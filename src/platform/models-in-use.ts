import manifestJson from '../../models/manifest.json';
import { DEFAULT_IDENTIFICATION, type IdentificationParameters } from '../voiceprint/identification.ts';
import { decodeVoiceprint } from '../voiceprint/voiceprint.ts';
import { fnv1a } from './fnv1a.ts';
import {
  embeddingFiles,
  type ModelPack,
  packInUse,
  parseManifest,
  segmentationFile,
  segmentationsOf,
} from './onnx/manifest.ts';

let pack: ModelPack | undefined;

/** The pack that this build of the service runs. */
export function packOfBuild(): ModelPack {
  pack ??= packInUse(parseManifest(manifestJson));
  return pack;
}

/**
 * Short name of a pack's models, 24 to 40 hexadecimal digits. It changes with the files, facts and parameters of the
 * segmentation models and the embedder.
 */
export function nameOfModels(pack: ModelPack): string {
  const { embedding } = pack;
  const segmentations = segmentationsOf(pack);
  const files = [...segmentations.map(segmentationFile), ...embeddingFiles(embedding)];
  const weights = files.map(({ sha256 }) => sha256.slice(0, 8));
  const parameters = [...segmentations, embedding].map(({ facts, tuned }) => ({ facts, tuned }));
  return [...weights, fnv1a(JSON.stringify(parameters)).toString(16).padStart(8, '0')].join('');
}

/** The embedder in use, as the manifest describes it. */
function embedder() {
  return packOfBuild().embedding;
}

/** Fitted parameters of the embedder in use; defaults for another embedder, or if none were fitted. */
export function identificationOf(embeddingId: string): IdentificationParameters {
  const { id, identification } = embedder();
  return id === embeddingId && identification !== undefined ? identification : DEFAULT_IDENTIFICATION;
}

/** Why a voiceprint of a caller is invalid, as the end of a sentence; undefined for a valid one. */
export function voiceprintFault(text: string): string | undefined {
  const decoded = decodeVoiceprint(text);
  if (!decoded.ok) {
    switch (decoded.error.kind) {
      case 'foreign':
        return 'is not a voiceprint of this service';
      case 'damaged':
        return 'is damaged: it was cut or changed after it was made';
      case 'version':
        return `has format version ${decoded.error.version}, which this service does not know`;
    }
  }
  const { id, facts } = embedder();
  const { embeddingId, embedding } = decoded.value;
  if (embeddingId !== id || embedding.length !== facts.dimension) {
    return `was made with the model ${embeddingId}, not with ${id}, which is in use: make it again`;
  }
  return undefined;
}
