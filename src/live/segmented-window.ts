import { assignOptimally } from '../diarization/numerics.ts';
import { buildPowerset, decodeHard, marginals, type Segmenter } from '../diarization/segmenter.ts';
import { LIVE } from './live-parameters.ts';

/**
 * Segmentation of one window: activity of its local speakers by frame. Frames are numbered from the start of the
 * stream; negative ones lie before it.
 */
export class SegmentedWindow {
  constructor(
    readonly firstFrame: number,
    readonly frames: number,
    readonly speakers: number,
    /** [frames, speakers] probability that each speaker talks */
    readonly activations: Float32Array,
    /** [frames] expected number of speakers at once */
    readonly expected: Float32Array,
    /** [frames, speakers] of 0 and 1 */
    readonly active: Uint8Array,
  ) {}

  get endFrame(): number {
    return this.firstFrame + this.frames;
  }

  isActive(local: number, frame: number): boolean {
    const row = frame - this.firstFrame;
    return row >= 0 && row < this.frames && this.active[row * this.speakers + local] === 1;
  }

  /** Probability that a local speaker talks in a frame of the window. */
  activation(local: number, frame: number): number {
    return this.activations[(frame - this.firstFrame) * this.speakers + local];
  }

  /** Number of local speakers who talk in a frame. */
  count(frame: number): number {
    let sum = 0;
    for (let local = 0; local < this.speakers; local++) sum += this.isActive(local, frame) ? 1 : 0;
    return sum;
  }

  isAlone(local: number, frame: number): boolean {
    return this.isActive(local, frame) && this.count(frame) === 1;
  }

  /** Whether a local speaker talks in any frame of the stream that the window covers. */
  talks(local: number): boolean {
    for (let frame = Math.max(0, this.firstFrame); frame < this.endFrame; frame++) {
      if (this.isActive(local, frame)) return true;
    }
    return false;
  }
}

/** Runs the segmentation on a window that starts at a sample of the stream. */
export async function segmentWindow(
  segmenter: Segmenter,
  window: Float32Array,
  startSample: number,
): Promise<SegmentedWindow> {
  const { maxLocalSpeakers, maxSimultaneous, frameShiftSamples, frameSizeSamples, classes } = segmenter.info;
  const scores = await segmenter.run(window, startSample);
  const powerset = buildPowerset(maxLocalSpeakers, maxSimultaneous);
  const active = decodeHard(scores, powerset);
  const activations = marginals(scores.map(Math.exp), powerset);
  const frames = scores.length / classes;
  const expected = new Float32Array(frames);
  activations.forEach((value, at) => {
    expected[Math.floor(at / maxLocalSpeakers)] += value;
  });
  // Frame f of the stream covers one shift from sample f · shift; the model's frames share its centre.
  const offset = (frameSizeSamples - frameShiftSamples) / 2;
  const firstFrame = Math.round((startSample + offset) / frameShiftSamples);
  return new SegmentedWindow(firstFrame, frames, maxLocalSpeakers, activations, expected, active);
}

/**
 * Averages a window with earlier ones where they overlap, as the overlap-add for recordings does. The last frames of a
 * window have little weight, because they lack right context. Local speakers of earlier windows are matched to those of
 * `now` by their activity.
 *
 * @param earlier latest first; frames outside `now` are ignored
 */
export function mergeWindows(now: SegmentedWindow, earlier: readonly SegmentedWindow[]): SegmentedWindow {
  if (earlier.length === 0) return now;
  const { frames, speakers, firstFrame } = now;
  const activations = new Float32Array(frames * speakers);
  const expected = new Float32Array(frames);
  const weights = new Float32Array(frames);
  for (const window of [now, ...earlier]) {
    const order = window === now ? identity(speakers) : bestOrder(now, window);
    const offset = window.firstFrame - firstFrame;
    for (let row = Math.max(0, -offset); row < window.frames && row + offset < frames; row++) {
      const weight = Math.min(1, (window.frames - row) / LIVE.fullWeightFrames);
      const to = row + offset;
      weights[to] += weight;
      expected[to] += weight * window.expected[row];
      for (let local = 0; local < speakers; local++) {
        activations[to * speakers + order[local]] += weight * window.activations[row * speakers + local];
      }
    }
  }
  for (let row = 0; row < frames; row++) {
    expected[row] /= weights[row];
    for (let local = 0; local < speakers; local++) activations[row * speakers + local] /= weights[row];
  }
  return new SegmentedWindow(
    firstFrame,
    frames,
    speakers,
    activations,
    expected,
    decide(activations, expected, speakers),
  );
}

/** [frames, speakers] of 0 and 1: in each frame the expected number of speakers, those with the largest activation. */
function decide(activations: Float32Array, expected: Float32Array, speakers: number): Uint8Array {
  const active = new Uint8Array(activations.length);
  expected.forEach((value, row) => {
    const at = row * speakers;
    for (let count = Math.round(value); count > 0; count--) {
      let best = -1;
      for (let local = 0; local < speakers; local++) {
        if (active[at + local] === 1) continue;
        if (best < 0 || activations[at + local] > activations[at + best]) best = local;
      }
      active[at + best] = 1;
    }
  });
  return active;
}

function identity(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index);
}

/** For each local speaker of `window` the matching one of `now`, by the largest total of shared activity. */
function bestOrder(now: SegmentedWindow, window: SegmentedWindow): ArrayLike<number> {
  const { speakers } = now;
  const shared = new Float64Array(speakers * speakers);
  for (
    let frame = Math.max(now.firstFrame, window.firstFrame);
    frame < Math.min(now.endFrame, window.endFrame);
    frame++
  ) {
    for (let local = 0; local < speakers; local++) {
      const value = window.activation(local, frame);
      for (let other = 0; other < speakers; other++) {
        shared[local * speakers + other] += value * now.activation(other, frame);
      }
    }
  }
  return assignOptimally(shared, speakers, speakers);
}
