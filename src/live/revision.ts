import { type Blocks, keptBlocks } from './blocks.ts';
import type { Look } from './look.ts';
import { LIVE, SAMPLE_RATE_HZ } from './parameters.ts';
import type { Speakers } from './speakers.ts';

/** Distance of two moments whose neighbourhood is listened to. */
const GRID_SAMPLES = 8000;

/**
 * Who talks around moments in which one person does, by the sound of that second and a half alone: local speakers of the segmentation are
 * sometimes two people (as `src/diarization/resegmentation.ts` does for recordings).
 */
export class Revision {
  /** By moment on the grid: [labels] probabilities. */
  readonly #posteriors = new Map<number, Float64Array>();

  constructor(
    private readonly speakers: Speakers,
    private readonly frameShiftSamples: number,
  ) {}

  /** Listens around the frames [from, to). */
  async listen(ear: Blocks, seen: Look, from: number, to: number): Promise<void> {
    const labels = this.speakers.inUse();
    if (labels.length < 2) return;
    const first = Math.max(0, Math.floor((from * this.frameShiftSamples) / GRID_SAMPLES));
    const last = Math.ceil((to * this.frameShiftSamples) / GRID_SAMPLES);
    const reach = (LIVE.revisionSeconds / 2) * SAMPLE_RATE_HZ;
    for (let moment = first; moment <= last; moment++) {
      const centre = moment * GRID_SAMPLES;
      const kept = keptBlocks(ear, centre - reach, centre + reach, this.frameShiftSamples, (f) => seen.count(f) === 1);
      const embedding = kept && (await ear.embed(kept.blocks));
      if (embedding !== undefined) this.#posteriors.set(moment, this.#posterior(embedding, labels));
    }
  }

  #posterior(embedding: Float32Array, labels: readonly number[]): Float64Array {
    const out = new Float64Array(this.speakers.labels);
    let sum = 0;
    for (const label of labels) {
      out[label] = Math.exp(this.speakers.similarity(embedding, label) / LIVE.revisionTemperature);
      sum += out[label];
    }
    return out.map((value) => value / sum);
  }

  /** The label of a frame in which one person talks, whom the mapping takes for `mapped`. */
  labelOf(frame: number, mapped: number): number {
    const position = (frame * this.frameShiftSamples) / GRID_SAMPLES;
    const before = Math.floor(position);
    const [left, right] = [this.#posteriors.get(before), this.#posteriors.get(before + 1)];
    if (left === undefined && right === undefined) return mapped;
    const towardsRight = left === undefined ? 1 : right === undefined ? 0 : position - before;
    let best = mapped;
    let highest = -1;
    for (let label = 0; label < this.speakers.labels; label++) {
      const heard = (1 - towardsRight) * (left?.[label] ?? 0) + towardsRight * (right?.[label] ?? 0);
      const value = LIVE.revisionWeight * heard + (label === mapped ? 1 - LIVE.revisionWeight : 0);
      if (value > highest) [best, highest] = [label, value];
    }
    return best;
  }
}
