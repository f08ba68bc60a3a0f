import type { SegmentationInfo, SegmentationPort } from '../../diarization/model-ports.ts';
import { buildPowerset, POWER_BANDS, POWER_SHIFT_SAMPLES } from '../../diarization/segmenter.ts';
import type { SegmentationEntry } from './manifest.ts';
import { readOnnxMetadata } from './metadata.ts';
import { floatOutput, floatTensor, type OnnxRuntime } from './runtime.ts';

/** Facts that segmentation exports carry in their metadata, by our names. */
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
 * Opens a segmentation model, as its manifest entry has it: whole `x` [1, 1, windowSamples], split `powers` [1, frames, 64];
 * either → `y` [1, framesPerWindow, classes]. Shorter windows, as live streams have them, give fewer frames.
 * What the file's own metadata states wins over the manifest, which must not contradict it on purpose: a fact that only the
 * manifest has is taken from there.
 *
 * @param pause called between the runs of a model that is cut
 * @throws when the file is damaged, or its classes do not fit the powerset that it declares
 */
export async function createSegmentation(
  runtime: OnnxRuntime,
  model: Uint8Array,
  entry: SegmentationEntry,
  pause: () => Promise<void> = async () => undefined,
): Promise<SegmentationPort> {
  const info = segmentationInfo(model, entry);
  const session = await runtime.createSession(model, { after: entry.form === 'whole' ? entry.cuts : [], pause });
  const input = entry.form === 'split' ? 'powers' : 'x';
  if (!session.inputNames.includes(input)) throw new Error(`${info.id} has no input "${input}"`);
  const { windowSamples, framesPerWindow, classes } = info;

  async function infer(data: Float32Array, dims: readonly number[], samples: number): Promise<Float32Array> {
    const { data: scores, dims: shape } = floatOutput(await session.run({ [input]: floatTensor(data, dims) }), 'y');
    const isExpected =
      samples === windowSamples ? scores.length === framesPerWindow * classes : scores.length % classes === 0;
    if (!isExpected) {
      throw new Error(`${info.id} gave [${shape.join(', ')}], not [1, ${framesPerWindow}, ${classes}]`);
    }
    return scores;
  }

  if (entry.form === 'whole') {
    return { form: 'whole', info, run: (window) => infer(window, [1, 1, window.length], window.length) };
  }
  return {
    form: 'split',
    info,
    run: (powers, frames) => infer(powers, [1, frames, POWER_BANDS], frames * POWER_SHIFT_SAMPLES),
  };
}

/** Facts of the manifest with those of the file's metadata over them. */
export function segmentationInfo(model: Uint8Array, entry: SegmentationEntry): SegmentationInfo {
  const facts = { ...entry.facts };
  for (const [key, value] of readOnnxMetadata(model)) {
    const name = METADATA_FACTS[key as keyof typeof METADATA_FACTS];
    const number = Number(value);
    if (name !== undefined && Number.isInteger(number) && number > 0) facts[name] = number;
  }
  const { sampleRateHz, ...known } = facts;
  if (sampleRateHz !== 16000) throw new Error(`${entry.id} wants ${sampleRateHz} Hz, not 16000 Hz`);
  const info: SegmentationInfo = { id: entry.id, ...known, tuned: entry.tuned };
  const expected = buildPowerset(info.maxLocalSpeakers, info.maxSimultaneous).classes;
  if (info.classes !== expected) {
    throw new Error(
      `${entry.id} has ${info.classes} classes; a powerset of ${info.maxLocalSpeakers} speakers, ` +
        `${info.maxSimultaneous} at once, has ${expected}`,
    );
  }
  return info;
}
