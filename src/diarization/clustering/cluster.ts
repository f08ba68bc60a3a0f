import { concatenated, release } from '../../audio/memory.ts';
import { type Items, KIND, type LocalSpeakers, type Representing } from '../local-speakers.ts';
import { argmax, assignOptimally, dot, normalise } from '../numerics.ts';
import type { ClusteringParameters } from '../parameters.ts';
import { SUBSEGMENT_SHIFT_SECONDS, type ThinnedSubsegments } from '../windows.ts';
import {
  averageLinkage,
  centroidsOfClusters,
  cosineDistances,
  cutAtHeight,
  cutIntoClusters,
  largeClusters,
  type Merge,
  nearestCentroids,
} from './linkage.ts';
import { type Plda, project } from './plda.ts';
import { centroidsOfSums, joinToCount, type SpeakerSum, speakersOf, sumsOf, type VbxResult, vbx } from './vbx.ts';

/** How many speakers the caller wants. */
export interface SpeakerBounds {
  readonly min: number;
  readonly max: number;
}

/** Length of a window, and time between two window starts. */
interface WindowSeconds {
  readonly step: number;
  readonly window: number;
}

/** Result of the clustering, from which any local speaker of the recording can be assigned. */
export interface ClusterModel {
  readonly clusters: number;
  readonly dimension: number;
  /** [dimension] subtracted from every embedding before a comparison */
  readonly shift: Float32Array;
  /** [clusters, dimension], unit length, of shifted embeddings */
  readonly centroids: Float32Array;
  readonly temperature: number;
  /** Only on request, and without a fixed number of speakers. */
  readonly margins?: CountMargins;
}

/**
 * How far the number of speakers is from changing: the number of steps by which the evidence must count less until fewer
 * are found, and more until more are found, from 1 to 5; 5 also stands for never.
 */
export interface CountMargins {
  readonly fewer: number;
  readonly more: number;
}

/** Clusters of local speakers. */
export interface Assignment {
  /** [count] */
  readonly clusterOf: Int32Array;
  /** [count, clusters] probability that the local speaker is that speaker; rows sum to 1 */
  readonly posterior: Float32Array;
}

type Pause = () => Promise<void>;

interface FindOptions {
  readonly pause?: Pause;
  /** Of the embedder that made the embeddings. */
  readonly plda?: Plda;
  /** Further evidence if there is a PLDA. */
  readonly subsegments?: ThinnedSubsegments;
  /** Whether to find out how sure the number of speakers is: up to eight more runs of VBx. */
  readonly countMargins?: boolean;
}

/** Smallest weight of an item: with weight 0 it would have no centroid. */
const MIN_ITEM_SECONDS = 0.01;
/** Without a PLDA: clusters with less speech are dropped. */
const MIN_CLUSTER_SECONDS = 1;
const MAX_ITERATIONS = 40;
/** VBx stops when the bound grows by less than this per second of evidence. */
const EPSILON_PER_SECOND = 1e-5;
const INIT_SMOOTHING = 7;
/** Factor on the evidence for a step of `CountMargins`. */
const EVIDENCE_STEP = Math.SQRT2;
const MAX_EVIDENCE_STEPS = 4;
/** Without a PLDA, a step changes the distance of the cut instead. */
const THRESHOLD_STEP = 0.04;
/** Distance between two cuts of the tree that VBx starts from. */
const START_STEP = 0.1;
/** If more speakers are requested than found, each round divides the regularisation by this… */
const REGULARISATION_DIVISOR = 1.5;
/** …down to this. Below it, changes of one person's voice or microphone become speakers. */
const MIN_REGULARISATION = 0.05;

/**
 * Finds the speakers of a recording, in these stages:
 *
 * 1. items: the local speakers and, with a PLDA, the subsegments, weighted by their seconds;
 * 2. average linkage of the items on cosine distance, with a share of the recording's mean subtracted;
 * 3. without a PLDA: a cut of the tree at a distance; small clusters are dropped;
 * 4. with a PLDA: VBx in its space from several cuts of the tree; the result with the highest evidence lower bound is
 *    used;
 * 5. bounds on the number of speakers: too many are joined; with too few, VBx runs again with less and less
 *    regularisation, and at last the tree is cut into the requested number of clusters.
 *
 * @param given local speakers of the whole recording, or its representatives, at least one
 */
export async function findSpeakers(
  given: Representing,
  parameters: ClusteringParameters,
  bounds: SpeakerBounds,
  windowSeconds: WindowSeconds,
  { pause = async () => undefined, plda, subsegments, countMargins = false }: FindOptions = {},
): Promise<ClusterModel> {
  // Without single-speaker speech, overlapped speech is used.
  const isAllOverlap = given.cleanSeconds.every((clean) => clean === 0);
  const speakers = isAllOverlap ? { ...given, cleanSeconds: given.activeSeconds } : given;
  const weights = Float64Array.from(speakers.cleanSeconds, (seconds) => seconds + MIN_ITEM_SECONDS);
  const shift = Float32Array.from(meanOf(speakers.embeddings, weights), (value) => parameters.meanShare * value);
  const stage = { parameters, bounds, shift, plda, pause, countMargins: countMargins && bounds.min < bounds.max };
  const furtherItems = plda && subsegments;
  const items = itemsOf(speakers, furtherItems, parameters.subsegmentShare, windowSeconds);
  const { centroids, margins } = await centroidsOf(items, stage);
  release(items.embeddings);
  const { dimension } = given;
  const clusters = centroids.length / dimension;
  return { clusters, dimension, shift, centroids, temperature: parameters.temperature, margins };
}

/** Input of the stages after the items. */
interface Stage {
  readonly parameters: ClusteringParameters;
  readonly bounds: SpeakerBounds;
  readonly shift: Float32Array;
  readonly plda: Plda | undefined;
  readonly pause: Pause;
  readonly countMargins: boolean;
}

/** Stages 2 to 5. @returns centroids [clusters, dimension], unit length */
async function centroidsOf(items: Items, stage: Stage): Promise<Pick<ClusterModel, 'centroids' | 'margins'>> {
  const { parameters, bounds, plda, pause } = stage;
  const bounded = (count: number) => Math.min(bounds.max, Math.max(bounds.min, count));
  const shifted = shiftedRows(items.embeddings, stage.shift);
  const distances = await cosineDistances(items, shifted, pause);
  const tree = await averageLinkage(distances, items.seconds, pause);
  release(distances);
  const centroidsOfCut = (clusters: number) => {
    const clusterOf = cutIntoClusters(tree, items.count, Math.min(items.count, clusters));
    return centroidsOfClusters(items, shifted, clusterOf, largeClusters(clusterOf, items.seconds, 0, 0));
  };
  if (plda === undefined) {
    const cutAt = (height: number) => {
      const clusterOf = cutAtHeight(tree, items.count, height);
      return {
        clusterOf,
        large: largeClusters(clusterOf, items.seconds, MIN_CLUSTER_SECONDS, parameters.minClusterShare),
      };
    };
    const { clusterOf, large } = cutAt(parameters.linkageThreshold);
    const wanted = bounded(large.length);
    const countAt = async (step: number) =>
      bounded(cutAt(parameters.linkageThreshold - step * THRESHOLD_STEP).large.length);
    return {
      centroids:
        wanted === large.length ? centroidsOfClusters(items, shifted, clusterOf, large) : centroidsOfCut(wanted),
      margins: stage.countMargins ? await marginsOf(wanted, countAt) : undefined,
    };
  }
  const run = await bayesian(items, shifted, tree, plda, parameters, pause);
  for (let fb = parameters.speakerRegularisation; fb > MIN_REGULARISATION; fb /= REGULARISATION_DIVISOR) {
    const sums = run.speakers(await run.vbx(fb));
    if (sums.length < bounds.min) continue;
    const regularisation = fb;
    const countAt = async (step: number) =>
      bounded(run.speakers(await run.vbx(regularisation, EVIDENCE_STEP ** step)).length);
    const margins = stage.countMargins ? await marginsOf(bounded(sums.length), countAt) : undefined;
    return { centroids: centroidsOfSums(joinToCount(sums, bounds.max), items.dimension), margins };
  }
  return { centroids: centroidsOfCut(bounds.min) };
}

/** @param countAt number of speakers with the evidence that many steps more, or less if negative */
async function marginsOf(found: number, countAt: (step: number) => Promise<number>): Promise<CountMargins> {
  const margin = async (sign: 1 | -1) => {
    let step = 1;
    while (step <= MAX_EVIDENCE_STEPS && sign * ((await countAt(sign * step)) - found) <= 0) step++;
    return step;
  };
  return { fewer: await margin(-1), more: await margin(1) };
}

/** Stage 1. The embeddings are copies. */
function itemsOf(
  speakers: Representing,
  subsegments: ThinnedSubsegments | undefined,
  subsegmentShare: number,
  windowSeconds: WindowSeconds,
): Items {
  const { dimension } = speakers;
  const seconds = distinctSeconds(speakers, windowSeconds).map((value) => Math.max(MIN_ITEM_SECONDS, value));
  if (subsegments === undefined || subsegments.count === 0)
    return { count: speakers.count, dimension, embeddings: speakers.embeddings.slice(), seconds };
  const count = speakers.count + subsegments.count;
  const subsegmentSeconds = subsegmentShare * subsegments.every * SUBSEGMENT_SHIFT_SECONDS;
  return {
    count,
    dimension,
    embeddings: concatenated(Float32Array, [speakers.embeddings, subsegments.embeddings]),
    seconds: Float64Array.from({ length: count }, (_, row) =>
      row < speakers.count ? (1 - subsegmentShare) * seconds[row] : subsegmentSeconds,
    ),
  };
}

/**
 * [count] seconds of clean speech that each local speaker adds to the recording. Speech that several windows cover is
 * divided among them; fewer windows cover the edges of a recording, or a short one.
 */
export function distinctSeconds(speakers: Representing, { step, window }: WindowSeconds): Float64Array {
  const cells = Math.max(1, Math.round(window / step));
  const { kinds, windows } = speakers;
  const last = windows.reduce((largest, index) => Math.max(largest, index), 0);
  return Float64Array.from(speakers.cleanSeconds, (seconds, row) => {
    if (kinds?.[row] === KIND.representative) return seconds / cells;
    const first = windows[row];
    let share = 0;
    for (let cell = first; cell < first + cells; cell++) {
      const coverage = Math.min(cell, last) - Math.max(0, cell - cells + 1) + 1;
      share += 1 / Math.max(1, coverage);
    }
    return (seconds * share) / cells;
  });
}

/**
 * Share of its seconds that a recording's speech counts as evidence. A further second after t seconds counts S / (S + t),
 * together S · ln(1 + T / S) for T seconds: the pieces of one person in one recording share their errors, so that
 * evidence without a limit would split every person. (Weaker likelihoods for wrong models: Miller and Dunson, "Robust
 * Bayesian inference via coarsening", 2019)
 */
function evidenceShare(speechSeconds: number, saturationSeconds: number): number {
  return (saturationSeconds * Math.log1p(speechSeconds / saturationSeconds)) / speechSeconds;
}

/** Prepares VBx on the items from several cuts of their tree. */
async function bayesian(
  items: Items,
  shifted: Float32Array,
  tree: readonly Merge[],
  plda: Plda,
  parameters: ClusteringParameters,
  pause: Pause,
) {
  const { count, seconds } = items;
  const features = project(plda, items.embeddings, count);
  await pause();
  subtract(features, meanOf(features, seconds), parameters.meanShare);
  const starts = await startsOf(items, shifted, tree, parameters, pause);
  const total = seconds.reduce((sum, value) => sum + value, 0);
  const share = evidenceShare(total, parameters.evidenceSaturationSeconds);
  const weights = seconds.map((value) => share * value);
  await pause();
  return {
    async vbx(speakerRegularisation: number, evidenceFactor = 1): Promise<VbxResult> {
      const settings = {
        statisticsScale: evidenceFactor * parameters.statisticsScale,
        speakerRegularisation,
        initSmoothing: INIT_SMOOTHING,
        maxIterations: MAX_ITERATIONS,
        epsilon: EPSILON_PER_SECOND * share * total,
      };
      let best: VbxResult | undefined;
      for (const start of starts) {
        const result = await vbx(features, plda.phi, start, settings, { weights, pause });
        if (best === undefined || result.bound > best.bound) {
          if (best) release(best.gamma);
          best = result;
        } else {
          release(result.gamma);
        }
      }
      return best!;
    },
    speakers(result: VbxResult): SpeakerSum[] {
      const sums = sumsOf(items, shifted, result, speakersOf(result));
      release(result.gamma);
      return sums;
    },
  };
}

/**
 * Initial clusters for VBx, [items] each: cuts of the tree at increasing distances down to one cluster. A cut with the
 * number of clusters of the previous one is the same cut and left out.
 */
async function startsOf(
  items: Items,
  shifted: Float32Array,
  tree: readonly Merge[],
  { initialThreshold, maxClusters }: ClusteringParameters,
  pause: Pause,
): Promise<Int32Array[]> {
  const starts: Int32Array[] = [];
  let last = Number.POSITIVE_INFINITY;
  for (let step = 0; last > 1; step++) {
    const cut = cutAtHeight(tree, items.count, initialThreshold + step * START_STEP);
    const clusters = largeClusters(cut, items.seconds, 0, 0);
    if (clusters.length === last) continue;
    last = clusters.length;
    const centroids = centroidsOfClusters(items, shifted, cut, clusters.slice(0, maxClusters));
    starts.push(nearestCentroids(items, shifted, centroids));
    await pause();
  }
  return starts;
}

/** Weighted mean of rows. @returns [dimension] */
function meanOf(rows: Float32Array | Float64Array, weights: ArrayLike<number>): Float64Array {
  const count = weights.length;
  const mean = new Float64Array(rows.length / count);
  let total = 0;
  for (let row = 0; row < count; row++) total += weights[row];
  for (let row = 0; row < count; row++) {
    const weight = weights[row] / total;
    for (let d = 0; d < mean.length; d++) mean[d] += weight * rows[row * mean.length + d];
  }
  return mean;
}

/** Subtracts a share of a vector from every row, in place. */
function subtract(rows: Float64Array, vector: Float64Array, share: number): void {
  for (let at = 0; at < rows.length; ) for (let d = 0; d < vector.length; d++) rows[at++] -= share * vector[d];
}

/** The rows less `shift`, scaled to unit length. */
function shiftedRows(rows: Float32Array, shift: Float32Array): Float32Array {
  const out = rows.slice();
  const dimension = shift.length;
  for (let at = 0; at < out.length; at += dimension) {
    for (let d = 0; d < dimension; d++) out[at + d] -= shift[d];
    normalise(out, at, dimension);
  }
  return out;
}

/**
 * Assigns local speakers to the speakers found: optimal assignment by cosine similarity within each window. Two local
 * speakers of a window get different speakers, unless there are fewer speakers than local ones: then those without an
 * assignment get the closest speaker.
 */
export function assignSpeakers(model: ClusterModel, speakers: LocalSpeakers): Assignment {
  const { clusters, centroids, temperature } = model;
  const { count, dimension, windows } = speakers;
  const shifted = shiftedRows(speakers.embeddings, model.shift);
  const scores = new Float32Array(count * clusters);
  for (let row = 0; row < count; row++) {
    for (let cluster = 0; cluster < clusters; cluster++) {
      scores[row * clusters + cluster] = dot(shifted, row * dimension, centroids, cluster * dimension, dimension);
    }
  }
  release(shifted);
  const clusterOf = new Int32Array(count);
  for (let start = 0; start < count; ) {
    let end = start + 1;
    while (end < count && windows[end] === windows[start]) end++;
    const chosen = assignOptimally(scores.subarray(start * clusters, end * clusters), end - start, clusters);
    chosen.forEach((cluster, index) => {
      const row = start + index;
      clusterOf[row] = cluster >= 0 ? cluster : argmax(scores, row * clusters, clusters);
    });
    start = end;
  }
  return { clusterOf, posterior: softmaxRows(scores, clusters, temperature) };
}

/**
 * Cosine similarity of one embedding, less the model's shift, to each speaker.
 *
 * @param embeddings [rows, dimension], unit length
 * @param similarities [clusters], written
 * @param scratch [dimension], overwritten
 */
export function similaritiesTo(
  { clusters, dimension, shift, centroids }: ClusterModel,
  embeddings: Float32Array,
  row: number,
  similarities: Float32Array,
  scratch: Float32Array,
): void {
  for (let d = 0; d < dimension; d++) scratch[d] = embeddings[row * dimension + d] - shift[d];
  normalise(scratch, 0, dimension);
  for (let cluster = 0; cluster < clusters; cluster++) {
    similarities[cluster] = dot(scratch, 0, centroids, cluster * dimension, dimension);
  }
}

function softmaxRows(scores: Float32Array, columns: number, temperature: number): Float32Array {
  const out = new Float32Array(scores.length);
  for (let start = 0; start < scores.length; start += columns) {
    const largest = scores[start + argmax(scores, start, columns)];
    let sum = 0;
    for (let column = 0; column < columns; column++) {
      const value = Math.exp((scores[start + column] - largest) / temperature);
      out[start + column] = value;
      sum += value;
    }
    for (let column = 0; column < columns; column++) out[start + column] /= sum;
  }
  return out;
}
