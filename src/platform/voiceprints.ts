import { DEFAULT_IDENTIFICATION, type IdentificationParameters } from '../voiceprint/identification.ts';
import { decodeVoiceprint } from '../voiceprint/voiceprint.ts';
import { packOfBuild } from './models-in-use.ts';

/** The embedder in use, as the manifest describes it. */
function embedder() {
  return packOfBuild().embedding;
}

/** What was fitted for an embedder; general values where nothing was, or for another one than that in use. */
export function identificationOf(embeddingId: string): IdentificationParameters {
  const { id, identification } = embedder();
  return id === embeddingId && identification !== undefined ? identification : DEFAULT_IDENTIFICATION;
}

/** What is wrong with a voiceprint that a caller sends, as the end of a sentence; undefined for a good one. */
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
