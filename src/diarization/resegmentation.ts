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

/** Subsegments that may still be needed: frames are finished a window after they were first seen. */
const KEPT = 256;

/**
 * Revises who speaks by the subsegments: assignment cannot split a local speaker who is two people, but its subsegments
 * can. Where one person speaks, the activations of the speakers are blended with the subsegments' posteriors,
 * interpolated between the two around the frame, less the more likely it is that several speak. Around a forced
 * subsegment its speaker changes places with the most active one.
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

  /** Subsegments of the next part; those of the frames that are finished next, must be among them or those before. */
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
    const speaker = this.forced.get(Math.round(position));
    if (speaker === undefined) return;
    for (const values of [activations, probabilities]) swap(values, speaker, argmax(values, 0, values.length));
  }

  /** Discards subsegments far before the frame. */
  discardBefore(frame: number): void {
    if (this.#similarities.size <= KEPT) return;
    const first = Math.floor(this.centreOfFrame(frame) / SUBSEGMENT_SHIFT_SAMPLES) - 1;
    // Frames are many, subsegments few: a lookup in the map for every frame of a day is garbage of hundreds of
    // megabytes.
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

  /** Posterior [clusters] of a subsegment; undefined where there is none because no single person speaks. */
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

/** By index of a subsegment: the cluster that is forced to be its speaker, whatever the votes. */
export type ForcedSpeakers = ReadonlyMap<number, number>;

interface Candidate {
  readonly cluster: number;
  readonly index: number;
  /** Cosine similarity to the cluster's centroid, less that to the closest other one. */
  readonly margin: number;
}

/**
 * Forces a subsegment for each requested speaker who is outvoted in every frame: the one with the largest margin of
 * similarity over all other speakers. Reads the embeddings of all parts once.
 *
 * @param missing clusters without a turn
 * @param before forced subsegments that stay
 * @param yieldsTurn whether a subsegment, when forced, gives its speaker a turn
 * @returns `before` and one more for each of `missing`, as long as there are subsegments
 */
export async function forceSpeakers(
  parts: Parts,
  model: ClusterModel,
  missing: readonly number[],
  before: ForcedSpeakers,
  yieldsTurn: (index: number) => boolean,
  pause: () => Promise<void>,
): Promise<ForcedSpeakers> {
  // As many candidates each as there are missing speakers, so that the others cannot take all of one's candidates.
  const best = missing.map((): Candidate[] => []);
  for await (const { speakers, subsegments } of readAhead(parts.count, parts.readEmbeddings)) {
    gather(subsegments, model, missing, (index) => !before.has(index) && yieldsTurn(index), best);
    release(speakers.embeddings, subsegments.embeddings);
    await pause();
  }
  const forced = new Map(before);
  const served = new Set<number>();
  for (const { cluster, index } of best.flat().sort(byMargin)) {
    if (served.has(cluster) || forced.has(index)) continue;
    forced.set(index, cluster);
    served.add(cluster);
  }
  return forced;
}

/**
 * Whether forcing a subsegment can give a turn: in silence and in crosstalk it changes nothing.
 *
 * @param tracks of any round: boosts and forced subsegments do not change how many people talk at once
 * @returns whether exactly one person talks for at least the minimum duration of a turn in the subsegment's half second
 */
export function turnYield(
  { speech, crosstalk, resolutionSeconds }: Pick<FrameTracks, 'speech' | 'crosstalk' | 'resolutionSeconds'>,
  {
    countBias,
    minDurationOnSeconds,
  }: Pick<DiarizationSettings['reconstruction'], 'countBias' | 'minDurationOnSeconds'>,
): (index: number) => boolean {
  const framesPerSubsegment = SUBSEGMENT_SHIFT_SECONDS / resolutionSeconds;
  const fewest = Math.max(1, Math.ceil(minDurationOnSeconds / resolutionSeconds));
  return (index) => {
    const from = Math.max(0, Math.round((index - 0.5) * framesPerSubsegment));
    const to = Math.min(speech.length, Math.round((index + 0.5) * framesPerSubsegment));
    let alone = 0;
    for (let frame = from; frame < to; frame++) {
      const atOnce = (speech[frame] + crosstalk[frame]) / 255 + countBias;
      if (atOnce > 0.5 && atOnce < 1.5) alone++;
    }
    return alone >= fewest;
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
      // Rows come in the order of their indices, so that an equal one does not displace an earlier one.
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
