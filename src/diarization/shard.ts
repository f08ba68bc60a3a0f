import { SAMPLE_RATE_HZ } from '../audio/audio-ports.ts';
import { concatenated, release } from '../audio/memory.ts';
import { Embedder } from './embedder.ts';
import { type LocalSpeakers, speakerMasks } from './local-speakers.ts';
import { MeanSegmenter, type WindowSegmenter } from './mean-segmenter.ts';
import type {
  EmbeddingInfo,
  EmbeddingPort,
  FilterbankPort,
  MelPowerPort,
  PoolingPort,
  SegmentationInfo,
  SegmentationPort,
} from './model-ports.ts';
import { type DiarizationSettings, withTuning } from './parameters.ts';
import { type ModelFacts, type ShardPart, SILENCE_DB } from './part.ts';
import { SampleBuffer } from './sample-buffer.ts';
import { buildPowerset, decodeHard, Segmenter } from './segmenter.ts';
import { type Subsegments, subsegmentMask, subsegmentsOfWindow, windowsOfShard } from './windows.ts';

/** Models and signal processing that the analysis of a shard needs. */
export interface AnalysisPorts {
  readonly segmentation: SegmentationPort;
  /** Its mean with `segmentation` is used; absent for one segmentation. */
  readonly secondSegmentation?: SegmentationPort;
  readonly embedding: EmbeddingPort;
  readonly filterbank: FilterbankPort;
  readonly melPower: MelPowerPort;
  readonly pooling: PoolingPort;
}

/** Positions in samples at 16 kHz; a shard starts at a multiple of the embedder's stretch. */
interface Shard {
  readonly startSample: number;
  readonly endSample: number;
  readonly totalSamples: number;
}

/**
 * Runs the models over one shard: segmentation on every window of the global grid that starts in [startSample,
 * endSample), and an embedding for each local speaker and each subsegment of these windows. The result is independent,
 * bit for bit, of how the recording is cut into shards. Holds about 30 s of samples at a time.
 *
 * @param samples 16 kHz mono from `startSample` to at least a window past `endSample` (or to the end of the
 *   recording), in blocks of any size; missing samples count as silence
 * @param pause called between model runs, so that a busy isolate can serve other requests
 */
export async function analyseShard(
  samples: AsyncIterable<Float32Array>,
  shard: Shard,
  ports: AnalysisPorts,
  settings: DiarizationSettings,
  pause: () => Promise<void>,
): Promise<ShardPart> {
  const segmenter = segmenterOf(ports);
  const facts = modelFacts(segmenter.info, ports.embedding.info, settings);
  const tuned = facts.tuned.reduce(withTuning, settings);
  const { windowSamples, stepSamples, framesPerWindow, classes, maxLocalSpeakers, frameShiftSamples } = facts;
  const { stretchSamples } = ports.embedding.info;
  if (shard.startSample % stretchSamples !== 0) throw new Error('a shard must start with an embedding stretch');
  // Otherwise a window could need the context of a short last stretch from before the shard (see stretchAt).
  if (windowSamples < stretchSamples) throw new Error('the embedding stretch is longer than the window');
  if (2 * stepSamples > windowSamples || 2 * stepSamples > stretchSamples)
    throw new Error('the window step is too long');

  const powerset = buildPowerset(maxLocalSpeakers, facts.maxSimultaneous);
  const secondsPerFrame = frameShiftSamples / SAMPLE_RATE_HZ;
  const minActiveFrames = Math.ceil(tuned.localSpeakers.minActiveSeconds / secondsPerFrame);
  const minCleanFrames = Math.ceil(tuned.localSpeakers.minCleanSeconds / secondsPerFrame);
  const grid = { windowSamples, stepSamples, totalSamples: shard.totalSamples };
  const { first, count } = windowsOfShard(grid, shard.startSample, shard.endSample);

  const buffer = new SampleBuffer(samples, shard.startSample);
  const embedder = new Embedder(ports, buffer, shard.totalSamples, pause);
  const probabilities = new Uint8Array(count * framesPerWindow * classes);
  const speakerRows = new SpeakerRows(facts.dimension);
  const subsegmentRows = new SubsegmentRows(facts.dimension);
  let loudest = SILENCE_DB;
  const minSubsegmentFrames = Math.ceil(tuned.subsegments.minCleanSeconds / secondsPerFrame);
  try {
    for (let index = 0; index < count; index++) {
      const window = first + index;
      const start = window * stepSamples;
      const end = start + windowSamples;
      await buffer.fill(Math.min(end, shard.totalSamples));
      const windowAudio = buffer.view(start, end);
      const scores = await segmenter.run(windowAudio, start);
      quantise(scores, probabilities, index * framesPerWindow * classes);
      await pause();
      const active = decodeHard(scores, powerset);
      release(scores);
      const masks = speakerMasks(active, maxLocalSpeakers, minActiveFrames, minCleanFrames);
      const next = start + stepSamples;
      loudest = Math.max(loudest, loudestDb(windowAudio));
      const centreOfFrame = (frame: number) => start + frame * frameShiftSamples + facts.frameSizeSamples / 2;
      const subsegments: { index: number; mask: Uint8Array }[] = [];
      // A whole embedder has none: it would run once for each.
      const { from, to } = ports.embedding.form === 'split' ? subsegmentsOfWindow(window, grid) : { from: 0, to: 0 };
      for (let subsegment = from; subsegment < to; subsegment++) {
        const mask = subsegmentMask(subsegment, active, maxLocalSpeakers, centreOfFrame, minSubsegmentFrames);
        if (mask !== undefined) subsegments.push({ index: subsegment, mask });
      }
      const embeddings = await embedder.embed({
        windowStartSample: start,
        windowSamples,
        masks: [...masks, ...subsegments].map(({ mask }) => mask),
        frameShiftSamples,
        frameSizeSamples: facts.frameSizeSamples,
      });
      masks.forEach((mask, speaker) => {
        const embedding = embeddings[speaker];
        if (embedding === undefined) return;
        speakerRows.add(
          window,
          mask.local,
          mask.cleanFrames * secondsPerFrame,
          mask.activeFrames * secondsPerFrame,
          embedding,
        );
      });
      subsegments.forEach(({ index: subsegment }, row) => {
        const embedding = embeddings[masks.length + row];
        if (embedding !== undefined) subsegmentRows.add(subsegment, embedding);
      });
      embedder.discardBefore(next);
      // A short last stretch needs up to one stretch of earlier samples.
      buffer.discardBefore(Math.floor(next / stretchSamples) * stretchSamples);
    }
  } finally {
    segmenter.close();
    embedder.close();
    await buffer.close();
  }
  return {
    facts,
    firstWindow: first,
    windowCount: count,
    speakers: speakerRows.finish(),
    subsegments: subsegmentRows.finish(),
    probabilities,
    loudestDb: loudest,
  };
}

function segmenterOf({ segmentation, secondSegmentation, melPower }: AnalysisPorts): WindowSegmenter {
  const first = new Segmenter(segmentation, melPower);
  return secondSegmentation === undefined
    ? first
    : new MeanSegmenter(first, new Segmenter(secondSegmentation, melPower));
}

function modelFacts(info: SegmentationInfo, embedding: EmbeddingInfo, settings: DiarizationSettings): ModelFacts {
  const tuned = [info.tuned, embedding.tuned];
  return {
    segmentationId: info.id,
    embeddingId: embedding.id,
    windowSamples: info.windowSamples,
    stepSamples: tuned.reduce(withTuning, settings).windows.stepSamples,
    maxLocalSpeakers: info.maxLocalSpeakers,
    maxSimultaneous: info.maxSimultaneous,
    classes: info.classes,
    frameShiftSamples: info.frameShiftSamples,
    frameSizeSamples: info.frameSizeSamples,
    framesPerWindow: info.framesPerWindow,
    dimension: embedding.dimension,
    tuned,
  };
}

/** Log-probabilities → bytes, 255 for certainty. */
function quantise(logProbabilities: Float32Array, target: Uint8Array, offset: number): void {
  for (let index = 0; index < logProbabilities.length; index++) {
    target[offset + index] = Math.round(255 * Math.min(1, Math.exp(logProbabilities[index])));
  }
}

class SpeakerRows {
  readonly #embeddings: Float32Array[] = [];
  readonly #windows: number[] = [];
  readonly #locals: number[] = [];
  readonly #clean: number[] = [];
  readonly #active: number[] = [];

  constructor(private readonly dimension: number) {}

  add(window: number, local: number, cleanSeconds: number, activeSeconds: number, embedding: Float32Array): void {
    this.#windows.push(window);
    this.#locals.push(local);
    this.#clean.push(cleanSeconds);
    this.#active.push(activeSeconds);
    this.#embeddings.push(embedding);
  }

  finish(): LocalSpeakers {
    return {
      count: this.#windows.length,
      dimension: this.dimension,
      embeddings: stacked(this.#embeddings),
      windows: Int32Array.from(this.#windows),
      locals: Uint8Array.from(this.#locals),
      cleanSeconds: Float32Array.from(this.#clean),
      activeSeconds: Float32Array.from(this.#active),
    };
  }
}

class SubsegmentRows {
  readonly #indices: number[] = [];
  readonly #embeddings: Float32Array[] = [];

  constructor(private readonly dimension: number) {}

  add(index: number, embedding: Float32Array): void {
    this.#indices.push(index);
    this.#embeddings.push(embedding);
  }

  finish(): Subsegments {
    return {
      count: this.#indices.length,
      dimension: this.dimension,
      indices: Int32Array.from(this.#indices),
      embeddings: stacked(this.#embeddings),
    };
  }
}

/** Vectors as rows of one array; the vectors are released. */
function stacked(vectors: readonly Float32Array[]): Float32Array {
  const rows = concatenated(Float32Array, vectors);
  release(...vectors);
  return rows;
}

/** Levels are measured over tenths of a second. */
const TENTH_SAMPLES = 1600;

/**
 * Level of the loudest tenth of a second, in whole dB of full scale; at least `SILENCE_DB`. The power of a tenth is the
 * variance of its samples, because a DC offset is no sound.
 *
 * @param samples 16 kHz mono
 */
export function loudestDb(samples: Float32Array): number {
  let loudest = 0;
  for (let from = 0; from < samples.length; from += TENTH_SAMPLES) {
    loudest = Math.max(loudest, powerOf(samples.subarray(from, from + TENTH_SAMPLES)));
  }
  return Math.max(SILENCE_DB, Math.round(10 * Math.log10(loudest)));
}

function powerOf(samples: Float32Array): number {
  let sum = 0;
  let squares = 0;
  for (const sample of samples) {
    sum += sample;
    squares += sample * sample;
  }
  return squares / samples.length - (sum / samples.length) ** 2;
}
