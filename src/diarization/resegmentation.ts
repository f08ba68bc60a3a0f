import type { Claims } from './claims.ts';
import { likenessTo } from './clustering/cluster.ts';
import type { ClusterModel } from './clustering/types.ts';
import { argmax } from './powerset.ts';
import { SUBSEGMENT_SHIFT_SAMPLES, type Subsegments } from './subsegments.ts';

export interface ResegmentationParameters {
  /** 0…1, see `DiarizationSettings.subsegments`. */
  readonly weight: number;
  readonly temperature: number;
}

/** Subsegments that may still be needed: frames are finished a window after they were first seen. */
const KEPT = 256;

/**
 * Lets the subsegments have their say about who speaks: a local speaker who is two people cannot be parted by assigning
 * it, but its subsegments can. Where one person speaks, the activations of the speakers are blended with the
 * subsegments' posteriors, interpolated between the two around the frame; the surer it is that several do, the more
 * they stay. Around a claimed subsegment the claimant changes places with whoever is most active.
 */
export class Resegmenter {
  readonly #none: Float32Array;
  /** By subsegment, [clusters]. */
  readonly #likenesses = new Map<number, Float32Array>();
  readonly #posteriors = new Map<number, Float32Array>();
  /** Of subsegments that were forgotten, for later ones. */
  readonly #spare: Float32Array[] = [];
  /** All subsegments before this one were forgotten. */
  #first = 0;

  constructor(
    private readonly model: ClusterModel,
    private readonly parameters: ResegmentationParameters,
    private readonly centreOfFrame: (frame: number) => number,
    private readonly claims: Claims = new Map(),
  ) {
    this.#none = new Float32Array(model.clusters);
  }

  /** Subsegments of the next part; those of the frames that are finished next, must be among them or those before. */
  add({ count, dimension, indices, embeddings }: Subsegments): void {
    const scratch = new Float32Array(dimension);
    for (let row = 0; row < count; row++) {
      const likeness = this.#take();
      likenessTo(this.model, embeddings, row, likeness, scratch);
      this.#likenesses.set(indices[row], likeness);
    }
  }

  /**
   * Blends in place.
   * @param expected number of speakers at once
   * @param activations [clusters]
   * @param probabilities [clusters] of the speakers
   */
  blend(frame: number, expected: number, activations: Float32Array, probabilities: Float32Array): void {
    const certainty = Math.min(1, Math.max(0, 1.5 - expected));
    const position = this.centreOfFrame(frame) / SUBSEGMENT_SHIFT_SAMPLES;
    const before = Math.floor(position);
    const left = this.#posteriorOf(before);
    const right = this.#posteriorOf(before + 1);
    if (certainty === 0 || (left === undefined && right === undefined)) return;
    const towardsRight = left === undefined ? 1 : right === undefined ? 0 : position - before;
    const weight = this.parameters.weight * certainty;
    const one = left ?? this.#none;
    const other = right ?? this.#none;
    mix(activations, one, other, towardsRight, weight);
    mix(probabilities, one, other, towardsRight, weight);
    const claimant = this.claims.get(Math.round(position));
    if (claimant === undefined) return;
    for (const values of [activations, probabilities]) swap(values, claimant, argmax(values, 0, values.length));
  }

  /** Forgets what lies far before the frame. */
  discardBefore(frame: number): void {
    if (this.#likenesses.size <= KEPT) return;
    const first = Math.floor(this.centreOfFrame(frame) / SUBSEGMENT_SHIFT_SAMPLES) - 1;
    // Frames are many, subsegments few: asking the map anew for every frame of a day is garbage of hundreds of
    // megabytes.
    if (first <= this.#first) return;
    this.#first = first;
    for (const values of [this.#likenesses, this.#posteriors]) {
      for (const [index, array] of values) {
        if (index >= first) break;
        values.delete(index);
        this.#spare.push(array);
      }
    }
  }

  /** Posterior [clusters] of a subsegment; undefined where there is none because no single person speaks. */
  #posteriorOf(index: number): Float32Array | undefined {
    const known = this.#posteriors.get(index);
    const own = this.#likenesses.get(index);
    if (known !== undefined || own === undefined) return known;
    const posterior = this.#take();
    posterior.set(own);
    softmax(posterior, 1 / this.parameters.temperature);
    this.#posteriors.set(index, posterior);
    return posterior;
  }

  #take(): Float32Array {
    return this.#spare.pop() ?? new Float32Array(this.model.clusters);
  }
}

/** In place. */
function softmax(values: Float32Array, scale: number): void {
  const largest = values[argmax(values, 0, values.length)];
  let sum = 0;
  for (let index = 0; index < values.length; index++) {
    values[index] = Math.exp(scale * (values[index] - largest));
    sum += values[index];
  }
  for (let index = 0; index < values.length; index++) values[index] /= sum;
}

/** Moves values towards the mixture of two posteriors, by a weight. [clusters] each */
function mix(values: Float32Array, one: Float32Array, other: Float32Array, towardsOther: number, weight: number): void {
  let total = 0;
  for (let cluster = 0; cluster < values.length; cluster++) total += values[cluster];
  total = Math.min(1, total);
  for (let cluster = 0; cluster < values.length; cluster++) {
    const posterior = (1 - towardsOther) * one[cluster] + towardsOther * other[cluster];
    values[cluster] = (1 - weight) * values[cluster] + weight * total * posterior;
  }
}

function swap(values: Float32Array, a: number, b: number): void {
  [values[a], values[b]] = [values[b], values[a]];
}
