import { type WindowGrid, windowCount } from './windows.ts';

/** Distance of two subsegments, in samples at 16 kHz. */
export const SUBSEGMENT_SHIFT_SAMPLES = 8000;
export const SUBSEGMENT_SHIFT_SECONDS = SUBSEGMENT_SHIFT_SAMPLES / 16_000;
/** Length of a subsegment. */
const SUBSEGMENT_SAMPLES = 24_000;

/**
 * Embeddings of short uniform pieces of speech, 1.5 s every 0.5 s (uniform subsegments, as in Park et al., "A review of speaker
 * diarization", 2022). They know nothing of the segmentation's local speakers, so they can tell when one of those is two people.
 */
export interface Subsegments {
  readonly count: number;
  readonly dimension: number;
  /** [count] position on the recording's grid, rising: subsegment k is centred on sample k · 8000. */
  readonly indices: Int32Array;
  /** [count, dimension], unit length */
  readonly embeddings: Float32Array;
}

/** Subsegments that a window looks at: those that are more central in it than in any other. [from, to) */
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

/** Rows of several sets, one after the other. */
export function joinSubsegments(sets: readonly Subsegments[], dimension: number): Subsegments {
  const count = sets.reduce((sum, set) => sum + set.count, 0);
  const joined = { count, dimension, indices: new Int32Array(count), embeddings: new Float32Array(count * dimension) };
  let row = 0;
  for (const set of sets) {
    joined.indices.set(set.indices, row);
    joined.embeddings.set(set.embeddings, row * dimension);
    row += set.count;
  }
  return joined;
}

/**
 * One in `every`, counted over the whole recording: a choice that no sharding changes. By their number among those that there are, not by their place, which
 * somebody who speaks at regular intervals may always, or never, have.
 *
 * @param before how many there are in the recording before these
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
