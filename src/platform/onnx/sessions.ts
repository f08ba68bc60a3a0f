import { SAMPLE_RATE_HZ } from '../../audio/audio-ports.ts';
import type {
  EmbeddingInfo,
  EmbeddingPort,
  SegmentationInfo,
  SegmentationPort,
} from '../../diarization/model-ports.ts';
import { buildPowerset } from '../../diarization/segmenter.ts';
import type { ModelRuntimes } from '../model-runtimes.ts';
import type { EmbeddingEntry, SegmentationEntry } from './manifest.ts';
import { readOnnxMetadata } from './model-file.ts';
import { floatOutput, floatTensor } from './runtime.ts';

/** Facts in the metadata of segmentation models, with our names. */
const METADATA_FACTS = {
  sample_rate: 'sampleRateHz',
  window_samples: 'windowSamples',
  window_size: 'windowSamples',
  num_classes: 'classes',
  num_speakers: 'maxLocalSpeakers',
  max_simultaneous: 'maxSimultaneous',
  powerset_max_classes: 'maxSimultaneous',
  receptive_field_shift: 'frameShiftSamples',
  receptive_field_size: 'frameSizeSamples',
  frames_per_window: 'framesPerWindow',
} as const;

/**
 * Opens a segmentation model: in its kernel, or a whole model from an ONNX file with input `x` [1, 1, windowSamples] and
 * output `y` [1, framesPerWindow, classes]. The shorter windows of live streams give fewer frames. Facts in the
 * metadata of an ONNX file override those of the manifest.
 *
 * @param pause called between the steps of a kernel
 * @throws if the file is damaged, or its classes do not match its powerset
 */
export async function createSegmentation(
  runtimes: ModelRuntimes,
  model: Uint8Array,
  entry: SegmentationEntry,
  pause: () => Promise<void> = async () => undefined,
): Promise<SegmentationPort> {
  if (entry.form === 'kernel') {
    const { run } = runtimes.segmentationKernel(model, pause);
    return { form: 'whole', info: infoOf(entry.facts, entry), run };
  }
  if (entry.form === 'split') {
    const { run } = runtimes.segmentationV8Kernel(model, pause);
    return { form: 'split', info: infoOf(entry.facts, entry), run };
  }
  const info = segmentationInfo(model, entry);
  const session = await runtimes.onnx.createSession(model);
  if (!session.inputNames.includes('x')) throw new Error(`${info.id} has no input "x"`);
  const { windowSamples, framesPerWindow, classes } = info;

  return {
    form: 'whole',
    info,
    async run(window) {
      const outputs = await session.run({ x: floatTensor(window, [1, 1, window.length]) });
      const { data: scores, dims } = floatOutput(outputs, 'y');
      const isExpected =
        window.length === windowSamples ? scores.length === framesPerWindow * classes : scores.length % classes === 0;
      if (!isExpected) throw new Error(`${info.id} gave [${dims.join(', ')}], not [1, ${framesPerWindow}, ${classes}]`);
      return scores;
    },
  };
}

/** Facts of the manifest, overridden by those of the file's metadata. */
export function segmentationInfo(model: Uint8Array, entry: SegmentationEntry): SegmentationInfo {
  const facts = { ...entry.facts };
  for (const [key, value] of readOnnxMetadata(model)) {
    const name = METADATA_FACTS[key as keyof typeof METADATA_FACTS];
    const number = Number(value);
    if (name !== undefined && Number.isInteger(number) && number > 0) facts[name] = number;
  }
  return infoOf(facts, entry);
}

function infoOf(
  { sampleRateHz, ...modelFacts }: SegmentationEntry['facts'],
  entry: SegmentationEntry,
): SegmentationInfo {
  if (sampleRateHz !== SAMPLE_RATE_HZ)
    throw new Error(`${entry.id} needs ${sampleRateHz} Hz, not ${SAMPLE_RATE_HZ} Hz`);
  const info: SegmentationInfo = { id: entry.id, ...modelFacts, tuned: entry.tuned };
  const expected = buildPowerset(info.maxLocalSpeakers, info.maxSimultaneous).classes;
  if (info.classes !== expected) {
    throw new Error(
      `${entry.id} has ${info.classes} classes; a powerset of ${info.maxLocalSpeakers} speakers, ` +
        `${info.maxSimultaneous} at once, has ${expected}`,
    );
  }
  return info;
}

/**
 * Opens a speaker embedder.
 *
 * @param files the weights, in the order of `embeddingFiles`
 * @param pause called between the steps of a kernel
 * @throws if a file is damaged or another one, or has metadata that contradicts the manifest
 */
export async function createEmbedding(
  runtimes: ModelRuntimes,
  files: readonly Uint8Array[],
  entry: EmbeddingEntry,
  pause: () => Promise<void> = async () => undefined,
): Promise<EmbeddingPort> {
  const { melBands } = entry.facts;
  const info: EmbeddingInfo = {
    id: entry.id,
    dimension: entry.facts.dimension,
    frameStride: entry.facts.frameStride,
    stretchSamples: entry.facts.stretchSamples,
    featureFloorNats: entry.facts.featureFloorNats,
    tuned: entry.tuned,
  };
  if (entry.form === 'whole') {
    const [model] = files;
    checkMetadata(model, entry);
    const session = await runtimes.onnx.createSession(model);
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
  const [weights, headModel] = files;
  const { trunk, continueTrunk } = runtimes.trunkKernel(weights, pause);
  const head = await runtimes.onnx.createSession(headModel);
  return {
    form: 'split',
    info,
    trunk,
    continueTrunk,
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

/** Checks sherpa-onnx's metadata of speaker embedders. */
function checkMetadata(model: Uint8Array, entry: EmbeddingEntry): void {
  const metadata = readOnnxMetadata(model);
  const expected: Readonly<Record<string, string>> = {
    sample_rate: String(entry.facts.sampleRateHz),
    output_dim: String(entry.facts.dimension),
    // The service subtracts the mean over time. A model for another normalisation would return useless vectors.
    feature_normalize_type: 'global-mean',
  };
  for (const [key, value] of Object.entries(expected)) {
    const stated = metadata.get(key);
    if (stated !== undefined && stated !== '' && stated !== value) {
      throw new Error(`${entry.id}: the file states ${key} ${stated}, the service needs ${value}`);
    }
  }
}
