import type { EmbeddingInfo, EmbeddingPort } from '../../diarization/model-ports.ts';
import type { EmbeddingEntry } from './manifest.ts';
import { readOnnxMetadata } from './metadata.ts';
import { floatOutput, floatTensor, type OnnxRuntime } from './runtime.ts';

/** The bytes of a speaker embedder, in the form that its manifest entry names. */
export type EmbeddingModel =
  | { readonly form: 'split'; readonly trunk: Uint8Array; readonly head: Uint8Array }
  | { readonly form: 'whole'; readonly model: Uint8Array };

/**
 * Opens a speaker embedder.
 *
 * @param pause called between the runs of a trunk that is cut
 * @throws when the bytes are of the other form, damaged, or their metadata contradicts the manifest
 */
export async function createEmbedding(
  runtime: OnnxRuntime,
  model: EmbeddingModel,
  entry: EmbeddingEntry,
  pause: () => Promise<void> = async () => undefined,
): Promise<EmbeddingPort> {
  if (model.form !== entry.form) throw new Error(`${entry.id} is a ${entry.form} embedder in the manifest`);
  const { melBands } = entry.facts;
  const info: EmbeddingInfo = {
    id: entry.id,
    dimension: entry.facts.dimension,
    frameStride: entry.facts.frameStride,
    stretchSamples: entry.facts.stretchSamples,
    featureFloorNats: entry.facts.featureFloorNats,
    tuned: entry.tuned,
  };
  if (model.form === 'whole') {
    checkMetadata(model.model, entry);
    const session = await runtime.createSession(model.model);
    const [input, output] = [onlyName(session.inputNames, entry), onlyName(session.outputNames, entry)];
    return {
      form: 'whole',
      info,
      async embed(feats, frames) {
        const outputs = await session.run({ [input]: floatTensor(feats, [1, frames, melBands]) });
        return floatOutput(outputs, output).data;
      },
    };
  }
  checkMetadata(model.trunk, entry);
  const after = entry.form === 'split' ? entry.trunkCuts : [];
  const trunk = await runtime.createSession(model.trunk, { after, pause });
  const head = await runtime.createSession(model.head);
  return {
    form: 'split',
    info,
    async trunk(feats, frames) {
      const outputs = await trunk.run({ feats: floatTensor(feats, [1, frames, melBands]) });
      const { data, dims } = floatOutput(outputs, 'frames');
      return { frames: data, frameCount: dims[1], channels: dims[2] };
    },
    async head(pooled, batch) {
      const outputs = await head.run({ pooled: floatTensor(pooled, [batch, pooled.length / batch]) });
      return floatOutput(outputs, 'embs').data;
    },
  };
}

function onlyName(names: readonly string[], entry: EmbeddingEntry): string {
  const [name] = names;
  if (name === undefined || names.length !== 1) throw new Error(`${entry.id} must have one input and one output`);
  return name;
}

/** sherpa-onnx's metadata of speaker embedders; exports without it (our two halves) rely on the manifest alone. */
function checkMetadata(model: Uint8Array, entry: EmbeddingEntry): void {
  const metadata = readOnnxMetadata(model);
  const expected: Readonly<Record<string, string>> = {
    sample_rate: String(entry.facts.sampleRateHz),
    output_dim: String(entry.facts.dimension),
    // The mean over time is subtracted (the scale of the samples goes with it); a model that wants another
    // normalisation
    // would run, and give useless vectors.
    feature_normalize_type: 'global-mean',
  };
  for (const [key, value] of Object.entries(expected)) {
    const stated = metadata.get(key);
    if (stated !== undefined && stated !== '' && stated !== value) {
      throw new Error(`${entry.id}: the file states ${key} ${stated}, the service needs ${value}`);
    }
  }
}
