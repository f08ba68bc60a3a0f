import { release } from '../audio/memory.ts';
import { type ClusterModel, similaritiesTo } from './clustering/cluster.ts';
import type { FrameTracks } from './diarization.ts';
import { argmax } from './numerics.ts';
import type { DiarizationSettings } from './parameters.ts';
import { type Parts, readAhead } from './part.ts';
import { SUBSEGMENT_SHIFT_SAMPLES, SUBSEGMENT_SHIFT_SECONDS, type Subsegments } from './windows.ts';

interface ResegmentationParameters {
  /** 0…1, see `DiarizationSettings.subsegments`. */
  readonly weight: number;
  readonly temperature: number;
}

/** Subsegments that may still be needed: a frame is finished up to one window after its subsegments are added. */
const MAX_KEPT_SUBSEGMENTS = 256;

/**
 * Corrects activations with the subsegments' embeddings: they can separate two people whom the segmentation took for
 * one local speaker. In single-speaker frames the activations are blended with the posteriors of the two subsegments
 * around the frame, interpolated. The weight falls with the probability of several speakers. Around a forced subsegment
 * its speaker swaps activations with the most active one.
 */
export class Resegmenter {
  readonly #none: Float32Array;
  /** By subsegment, [clusters]. */
  readonly #similarities = new Map<number, Float32Array>();
  readonly #posteriors = new Map<number, Float32Array>();
  /** Arrays of discarded subsegments, for later ones. */
  readonly #spare: Float32Array[] = [];
  /** All subsegments before this one were discarded. */
  #first = 0;

  constructor(
    private readonly model: ClusterModel,
    private readonly parameters: ResegmentationParameters,
    private readonly centreOfFrame: (frame: number) => number,
    private readonly forced: ForcedSpeakers = new Map(),
  ) {
    this.#none = new Float32Array(model.clusters);
  }

  /** Adds the subsegments of the next part. Frames must not be finished before their subsegments are added. */
  add({ count, dimension, indices, embeddings }: Subsegments): void {
    const scratch = new Float32Array(dimension);
    for (let row = 0; row < count; row++) {
      const similarities = this.#take();
      similaritiesTo(this.model, embeddings, row, similarities, scratch);
      this.#similarities.set(indices[row], similarities);
    }
  }

  /**
   * Blends in place.
   * @param expected expected number of speakers at once
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
    const speaker = this.forced.get(Math.round(position));
    if (speaker === undefined) return;
    for (const values of [activations, probabilities]) swap(values, speaker, argmax(values, 0, values.length));
  }

  /** Discards subsegments far before the frame. */
  discardBefore(frame: number): void {
    if (this.#similarities.size <= MAX_KEPT_SUBSEGMENTS) return;
    const first = Math.floor(this.centreOfFrame(frame) / SUBSEGMENT_SHIFT_SAMPLES) - 1;
    // Iterating over the maps for every frame of a day would make hundreds of megabytes of garbage.
    if (first <= this.#first) return;
    this.#first = first;
    for (const values of [this.#similarities, this.#posteriors]) {
      for (const [index, array] of values) {
        if (index >= first) break;
        values.delete(index);
        this.#spare.push(array);
      }
    }
  }

  /** Posterior [clusters] of a subsegment; undefined if it has no embedding because no single person speaks. */
  #posteriorOf(index: number): Float32Array | undefined {
    const known = this.#posteriors.get(index);
    const own = this.#similarities.get(index);
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

/** Replaces the values by their softmax. */
function softmax(values: Float32Array, scale: number): void {
  const largest = values[argmax(values, 0, values.length)];
  let sum = 0;
  for (let index = 0; index < values.length; index++) {
    values[index] = Math.exp(scale * (values[index] - largest));
    sum += values[index];
  }
  for (let index = 0; index < values.length; index++) values[index] /= sum;
}

/** Blends values with the interpolation of two posteriors, in place. [clusters] each */
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

/** By index of a subsegment: the cluster that is forced to be its speaker. */
export type ForcedSpeakers = ReadonlyMap<number, number>;

interface Candidate {
  readonly cluster: number;
  readonly index: number;
  /** Cosine similarity to the cluster's centroid, less that to the closest other one. */
  readonly margin: number;
}

/**
 * Forces a subsegment for each requested speaker who is outvoted in every frame: the subsegment most similar to that
 * speaker in comparison with all other speakers. Reads the embeddings of all parts once.
 *
 * @param missing clusters without a turn
 * @param earlier subsegments that are forced already, and stay so
 * @param yieldsTurn whether forcing a subsegment gives its speaker a turn
 * @returns `earlier` and one more for each of `missing`, as far as there are subsegments
 */
export async function forceSpeakers(
  parts: Parts,
  model: ClusterModel,
  missing: readonly number[],
  earlier: ForcedSpeakers,
  yieldsTurn: (index: number) => boolean,
  pause: () => Promise<void>,
): Promise<ForcedSpeakers> {
  // One candidate per missing speaker for each: the others cannot take all of a speaker's candidates.
  const best = missing.map((): Candidate[] => []);
  for await (const { speakers, subsegments } of readAhead(parts.count, parts.readEmbeddings)) {
    gather(subsegments, model, missing, (index) => !earlier.has(index) && yieldsTurn(index), best);
    release(speakers.embeddings, subsegments.embeddings);
    await pause();
  }
  const forced = new Map(earlier);
  const served = new Set<number>();
  for (const { cluster, index } of best.flat().sort(byMargin)) {
    if (served.has(cluster) || forced.has(index)) continue;
    forced.set(index, cluster);
    served.add(cluster);
  }
  return forced;
}

/**
 * Whether forcing a subsegment can give a turn: in silence and in crosstalk it has no effect.
 *
 * @param tracks of any round: boosts and forced subsegments do not change the number of people who talk at once
 * @returns whether exactly one person talks for the minimum duration of a turn in the subsegment's half second
 */
export function turnYield(
  { speech, crosstalk, resolutionSeconds }: Pick<FrameTracks, 'speech' | 'crosstalk' | 'resolutionSeconds'>,
  {
    countBias,
    minDurationOnSeconds,
  }: Pick<DiarizationSettings['reconstruction'], 'countBias' | 'minDurationOnSeconds'>,
): (index: number) => boolean {
  const framesPerSubsegment = SUBSEGMENT_SHIFT_SECONDS / resolutionSeconds;
  const minFrames = Math.max(1, Math.ceil(minDurationOnSeconds / resolutionSeconds));
  return (index) => {
    const from = Math.max(0, Math.round((index - 0.5) * framesPerSubsegment));
    const to = Math.min(speech.length, Math.round((index + 0.5) * framesPerSubsegment));
    let alone = 0;
    for (let frame = from; frame < to; frame++) {
      const atOnce = (speech[frame] + crosstalk[frame]) / 255 + countBias;
      if (atOnce > 0.5 && atOnce < 1.5) alone++;
    }
    return alone >= minFrames;
  };
}

function gather(
  { count, dimension, indices, embeddings }: Subsegments,
  model: ClusterModel,
  missing: readonly number[],
  mayForce: (index: number) => boolean,
  best: readonly Candidate[][],
): void {
  const scratch = new Float32Array(dimension);
  const similarities = new Float32Array(model.clusters);
  for (let row = 0; row < count; row++) {
    const index = indices[row];
    if (!mayForce(index)) continue;
    similaritiesTo(model, embeddings, row, similarities, scratch);
    const { closest, first, second } = twoClosest(similarities);
    missing.forEach((cluster, at) => {
      const margin = similarities[cluster] - (cluster === closest ? second : first);
      const ranked = best[at];
      const isFull = ranked.length === missing.length;
      // Rows are in the order of their indices: of equal margins the earlier row stays.
      if (isFull && margin <= ranked.at(-1)!.margin) return;
      if (isFull) ranked.pop();
      ranked.push({ cluster, index, margin });
      ranked.sort(byMargin);
    });
  }
}

/** The most similar cluster, its similarity, and that of the next one. */
function twoClosest(similarities: Float32Array): { closest: number; first: number; second: number } {
  let closest = -1;
  let [first, second] = [-1, -1];
  similarities.forEach((value, cluster) => {
    if (value > first || closest < 0) [closest, first, second] = [cluster, value, first];
    else if (value > second) second = value;
  });
  return { closest, first, second };
}

function byMargin(a: Candidate, b: Candidate): number {
  return b.margin - a.margin || a.index - b.index || a.cluster - b.cluster;
}
