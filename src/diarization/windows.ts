import { SAMPLE_RATE_HZ } from '../audio/audio-ports.ts';
import { concatenated } from '../audio/memory.ts';

/** Grid of the sliding windows. All positions are samples at 16 kHz from the start of the recording. */
interface WindowGrid {
  readonly windowSamples: number;
  readonly stepSamples: number;
  readonly totalSamples: number;
}

/** Frame grid of the recording: frame f is centred on sample `shiftSamples * f + sizeSamples / 2`. */
interface FrameGrid {
  readonly shiftSamples: number;
  readonly sizeSamples: number;
  readonly framesPerWindow: number;
}

/**
 * Number of windows: all that fit, and one more, padded with silence, if the last one ends before the recording. A
 * recording shorter than a window has one padded window, an empty one none.
 */
export function windowCount(grid: WindowGrid): number {
  const { windowSamples, stepSamples, totalSamples } = grid;
  if (totalSamples <= 0) return 0;
  return Math.max(0, Math.ceil((totalSamples - windowSamples) / stepSamples)) + 1;
}

/** Windows that start in [startSample, endSample). */
export function windowsOfShard(
  grid: WindowGrid,
  startSample: number,
  endSample: number,
): { readonly first: number; readonly count: number } {
  const total = windowCount(grid);
  const first = Math.min(total, Math.ceil(startSample / grid.stepSamples));
  const end = Math.min(total, Math.ceil(endSample / grid.stepSamples));
  return { first, count: Math.max(0, end - first) };
}

/** First frame of a window on the recording's frame grid, rounded if the shift does not divide the step. */
export function firstFrame(window: number, grid: WindowGrid, frames: FrameGrid): number {
  return Math.round((window * grid.stepSamples) / frames.shiftSamples);
}

/** A span of the recording that goes through the embedding trunk in one run. */
export interface Stretch {
  /** Samples that the model sees. */
  readonly fromSample: number;
  readonly toSample: number;
  /** Frames centred before this sample belong to the previous stretch. */
  readonly ownFromSample: number;
}

/**
 * Stretch k covers [k·S, (k+1)·S) independent of the sharding, and so is the embedding input of a frame. A last stretch
 * shorter than S/2 is computed on the last S samples instead: mean normalisation over a second or two of speech would
 * distort it. The limit is S/2 because a shard with windows here has the samples from (k−1)·S on, but no earlier ones.
 */
export function stretchAt(index: number, stretchSamples: number, totalSamples: number): Stretch {
  const own = index * stretchSamples;
  const toSample = Math.min(own + stretchSamples, totalSamples);
  const isShort = toSample - own < stretchSamples / 2;
  return { fromSample: isShort ? Math.max(0, toSample - stretchSamples) : own, toSample, ownFromSample: own };
}

/** Distance of two subsegment centres, in samples at 16 kHz. */
export const SUBSEGMENT_SHIFT_SAMPLES = 8000;
export const SUBSEGMENT_SHIFT_SECONDS = SUBSEGMENT_SHIFT_SAMPLES / SAMPLE_RATE_HZ;
/** Length of a subsegment. */
const SUBSEGMENT_SAMPLES = 24_000;

/**
 * Embeddings of uniform subsegments, 1.5 s every 0.5 s (Park et al., "A review of speaker diarization", 2022). They do
 * not depend on the segmentation's local speakers, so that they can separate two people in one local speaker.
 */
export interface Subsegments {
  readonly count: number;
  readonly dimension: number;
  /** [count] position on the recording's grid, rising: subsegment k is centred on sample k · 8000. */
  readonly indices: Int32Array;
  /** [count, dimension], unit length */
  readonly embeddings: Float32Array;
}

/** Subsegments of which one in `every` is kept. */
export type ThinnedSubsegments = Subsegments & { readonly every: number };

/** Subsegments [from, to) that are embedded with a window: those closer to its centre than to any other. */
export function subsegmentsOfWindow(window: number, grid: WindowGrid): { readonly from: number; readonly to: number } {
  const last = windowCount(grid) - 1;
  const centre = (index: number): number => index * grid.stepSamples + grid.windowSamples / 2;
  const border = (index: number): number =>
    Math.ceil((centre(index) - grid.stepSamples / 2) / SUBSEGMENT_SHIFT_SAMPLES);
  const end = Math.ceil(grid.totalSamples / SUBSEGMENT_SHIFT_SAMPLES);
  return {
    from: window === 0 ? 0 : Math.min(end, border(window)),
    to: window >= last ? end : Math.min(end, border(window + 1)),
  };
}

/**
 * The frames of a window from which a subsegment's embedding is taken: those in which exactly one person speaks.
 *
 * @param index of the subsegment
 * @param active [frames, speakers] of 0 and 1
 * @param centreOfFrame sample of the recording on which a frame is centred
 * @returns [frames] of 0 and 1, undefined with fewer than `minFrames`
 */
export function subsegmentMask(
  index: number,
  active: Uint8Array,
  speakers: number,
  centreOfFrame: (frame: number) => number,
  minFrames: number,
): Uint8Array | undefined {
  const frames = active.length / speakers;
  const centre = index * SUBSEGMENT_SHIFT_SAMPLES;
  const mask = new Uint8Array(frames);
  let kept = 0;
  for (let frame = 0; frame < frames; frame++) {
    if (Math.abs(centreOfFrame(frame) - centre) > SUBSEGMENT_SAMPLES / 2) continue;
    let atOnce = 0;
    for (let speaker = 0; speaker < speakers; speaker++) atOnce += active[frame * speakers + speaker];
    if (atOnce !== 1) continue;
    mask[frame] = 1;
    kept++;
  }
  return kept >= minFrames ? mask : undefined;
}

/** Concatenates the rows of several sets. */
export function joinSubsegments(sets: readonly Subsegments[], dimension: number): Subsegments {
  const count = sets.reduce((sum, set) => sum + set.count, 0);
  const indices = sets.map((set) => set.indices);
  const embeddings = sets.map((set) => set.embeddings);
  return {
    count,
    dimension,
    indices: concatenated(Int32Array, indices),
    embeddings: concatenated(Float32Array, embeddings),
  };
}

/**
 * Keeps one in `every` subsegments, counted over the whole recording, so that the choice does not depend on the
 * sharding. It counts existing subsegments, not positions on the grid: with those, a person who speaks at regular
 * intervals could be kept always or never.
 *
 * @param before number of subsegments of the recording before these
 */
export function thinned(subsegments: Subsegments, every: number, before: number): Subsegments {
  if (every === 1) return subsegments;
  const { count, dimension, indices, embeddings } = subsegments;
  const rows = Array.from({ length: count }, (_, row) => row).filter((row) => (before + row) % every === 0);
  const kept = new Float32Array(rows.length * dimension);
  rows.forEach((row, at) => {
    kept.set(embeddings.subarray(row * dimension, (row + 1) * dimension), at * dimension);
  });
  return { count: rows.length, dimension, indices: Int32Array.from(rows, (row) => indices[row]), embeddings: kept };
}
