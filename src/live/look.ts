import { buildPowerset, decodeHard, marginals, type Segmenter } from '../diarization/segmenter.ts';

/**
 * What the segmentation sees in one window: who of its local speakers talks in which frame. Frames are numbered from the beginning
 * of the stream, negative ones lie before it.
 */
export class Look {
  constructor(
    readonly firstFrame: number,
    readonly frames: number,
    readonly speakers: number,
    /** [frames, speakers] probability that each talks */
    readonly activations: Float32Array,
    /** [frames] how many are expected to talk at once */
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

  /** Probability that a local speaker talks in a frame that was looked at. */
  activation(local: number, frame: number): number {
    return this.activations[(frame - this.firstFrame) * this.speakers + local];
  }

  /** How many talk at once. */
  count(frame: number): number {
    let sum = 0;
    for (let local = 0; local < this.speakers; local++) sum += this.isActive(local, frame) ? 1 : 0;
    return sum;
  }

  isAlone(local: number, frame: number): boolean {
    return this.isActive(local, frame) && this.count(frame) === 1;
  }

  /** Frames of [from, to) in which the local speaker talks, or talks alone. */
  sum(local: number, from: number, to: number, alone = false): number {
    let sum = 0;
    for (let frame = Math.max(from, this.firstFrame); frame < Math.min(to, this.endFrame); frame++) {
      if (alone ? this.isAlone(local, frame) : this.isActive(local, frame)) sum++;
    }
    return sum;
  }
}

/** Looks at a window that starts at a sample of the stream. */
export async function look(segmenter: Segmenter, window: Float32Array, startSample: number): Promise<Look> {
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
  // Frame f of the stream covers the samples from f shifts on, as far as a frame of the model is centred there.
  const offset = (frameSizeSamples - frameShiftSamples) / 2;
  const firstFrame = Math.round((startSample + offset) / frameShiftSamples);
  return new Look(firstFrame, frames, maxLocalSpeakers, activations, expected, active);
}
