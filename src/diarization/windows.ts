/** Where the sliding windows of a recording lie. All positions are samples at 16 kHz from the start of the recording. */
export interface WindowGrid {
  readonly windowSamples: number;
  readonly stepSamples: number;
  readonly totalSamples: number;
}

/** The frames of the recording as a whole: frame f is centred on sample `shiftSamples * f + sizeSamples / 2`. */
export interface FrameGrid {
  readonly shiftSamples: number;
  readonly sizeSamples: number;
  readonly framesPerWindow: number;
}

/**
 * Number of windows: all that fit, and one more, padded with silence, where the last of them ends before the recording does.
 * A recording shorter than a window is one padded window; an empty one has none.
 */
export function windowCount(grid: WindowGrid): number {
  const { windowSamples, stepSamples, totalSamples } = grid;
  if (totalSamples <= 0) return 0;
  return Math.max(0, Math.ceil((totalSamples - windowSamples) / stepSamples)) + 1;
}

/** Windows that start in [startSample, endSample): first index and how many. */
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

/** First frame of a window on the recording's frame grid: the closest one, where step and shift do not divide. */
export function firstFrame(window: number, grid: WindowGrid, frames: FrameGrid): number {
  return Math.round((window * grid.stepSamples) / frames.shiftSamples);
}

/** A piece of the recording that goes through the embedding trunk in one run. */
export interface Stretch {
  /** Samples that the model sees. */
  readonly fromSample: number;
  readonly toSample: number;
  /** Frames centred before this sample belong to the previous stretch. */
  readonly ownFromSample: number;
}

/**
 * Stretch k covers [k·S, (k+1)·S) whatever the sharding, so that a frame's embedding input never depends on it. A last stretch
 * shorter than half of S is computed on the last S samples instead: mean normalisation over a second or two of speech would
 * distort it. (Half, because a shard that has windows here holds the samples from (k−1)·S on, but no earlier ones.)
 */
export function stretchAt(index: number, stretchSamples: number, totalSamples: number): Stretch {
  const own = index * stretchSamples;
  const toSample = Math.min(own + stretchSamples, totalSamples);
  const isShort = toSample - own < stretchSamples / 2;
  return { fromSample: isShort ? Math.max(0, toSample - stretchSamples) : own, toSample, ownFromSample: own };
}
