import { release } from '../../audio/memory.ts';
import type { LocalSpeakers } from '../local-speakers.ts';
import { normalise } from '../vectors.ts';
import type { SpeakerSum } from './alike.ts';
import { assignWindows } from './assign.ts';
import { type BayesianParameters, type BayesianSpace, bayesianSpeakers, moreSpeakers } from './bayesian.ts';
import { centroidsOf, largeClusters, renumber, type SizeLimits } from './centroids.ts';
import { cosineDistances } from './distances.ts';
import type { FragmentParameters } from './fragments.ts';
import { distinctSeconds, embeddingWeights, meanShift, shifted, type WindowSeconds } from './items.ts';
import { cutAtHeight, linkage, type Merge } from './linkage.ts';
import { type Plda, project } from './plda.ts';
import { splitOff } from './split-off.ts';
import { clustersWanted } from './wanted.ts';
import {
  asLocalSpeakers,
  type Evidence,
  type ThinnedSubsegments,
  trainingSet,
  type Weighted,
  withPieces,
} from './weighted.ts';

export interface ClusteringParameters extends SizeLimits {
  /** Share of the recording's mean embedding that is taken from every embedding. */
  readonly meanShare: number;
  /** Average cosine distance up to which clusters are merged. */
  readonly threshold: number;
  /** The same between representatives of a long recording, which are means and so lie closer together. */
  readonly representativeThreshold: number;
  /** Local speakers with less speech alone take no part in finding the clusters; they are assigned afterwards. */
  readonly minCleanSeconds: number;
  /** The same once more speakers are wanted than were found: who says little must be found too. */
  readonly minCleanSecondsWanted: number;
  /**
   * Distance, at least, between two local speakers of one window: the segmentation says that they are different people.
   */
  readonly sameWindowDistance: number;
  /**
   * Where a wanted number of speakers is not found, clusters further apart than this are not split before small ones
   * are taken.
   */
  readonly coarseDistance: number;
  /** Recordings with more local speakers are reduced to so many representatives first. */
  readonly maxItems: number;
  /** Sharpness of the assignment probabilities: softmax of cosine similarity over this. */
  readonly temperature: number;
  /** Used where the embedder comes with a PLDA. */
  readonly bayesian: BayesianParameters;
  /** Used once the turns of what VBx found are known. */
  readonly fragments: FragmentParameters;
}

/** How many speakers the caller wants. */
export interface SpeakerBounds {
  readonly min: number;
  readonly max: number;
}

/** What clustering found: enough to assign any local speaker of the recording. */
export interface ClusterModel {
  readonly clusters: number;
  readonly dimension: number;
  /** [dimension] taken from every embedding before it is compared */
  readonly shift: Float32Array;
  /** [clusters, dimension], unit length, of shifted embeddings */
  readonly centroids: Float32Array;
  readonly temperature: number;
  /** [clusters] what VBx found each of them in; undefined where it was not used. */
  readonly sums?: readonly SpeakerSum[];
}

/** Clusters of local speakers. */
export interface Assignment {
  /** [count] */
  readonly clusterOf: Int32Array;
  /** [count, clusters] probability that the local speaker is that speaker; rows sum to 1 */
  readonly posterior: Float32Array;
}

/** Ways to reach a wanted number of speakers that are tried before the best of them is taken. */
const MAX_TRIES = 50;

type Pause = () => Promise<void>;

export interface FindOptions {
  readonly pause?: Pause;
  /** Of the embedder that made the embeddings. */
  readonly plda?: Plda;
  /**
   * Short pieces of speech, further evidence where there is a PLDA. In a long recording they are thinned: one in
   * `every` is left.
   */
  readonly subsegments?: ThinnedSubsegments;
  /**
   * Leave what VBx found apart, more than are wanted too: they are joined once their turns are known, by
   * `joinFragments`.
   */
  readonly keepFragments?: boolean;
}

/**
 * Finds the speakers of a recording.
 *
 * Average-linkage clustering of the local speakers with enough clean speech: cut at a tuned distance, small clusters
 * absorbed by the others; or, with a PLDA, together with the subsegments cut low and left to VBx. A wanted number of
 * speakers is read off the same tree; with a PLDA, VBx's own speakers are joined, or what sounds like none of them
 * becomes further speakers, or VBx is asked for more. All but `keepFragments`, and recordings in which nobody talks
 * alone, as in `training/calibration/clustering.py`.
 *
 * @param given local speakers of the whole recording, or its representatives, at least one
 */
export async function findSpeakers(
  given: LocalSpeakers,
  parameters: ClusteringParameters,
  bounds: SpeakerBounds,
  windowSeconds: WindowSeconds,
  options: FindOptions = {},
): Promise<ClusterModel> {
  const { pause = async () => undefined, plda, subsegments, keepFragments = false } = options;
  // Where nobody ever talks alone for long, what is said at once is all there is.
  const isAllAtOnce = given.cleanSeconds.every((clean) => clean < parameters.minCleanSeconds);
  const speakers = isAllAtOnce ? { ...given, cleanSeconds: given.activeSeconds } : given;
  const weights = embeddingWeights(speakers);
  const shift = meanShift(speakers, weights, parameters.meanShare);
  const seconds = distinctSeconds(speakers, windowSeconds);
  const evidence =
    plda === undefined
      ? undefined
      : { plda, pieces: asLocalSpeakers(subsegments, speakers.dimension), shift, keepFragments };
  const original = { speakers, weights, seconds };
  const { centroids, sums } = await centroidsFound(original, evidence, parameters, bounds, shift, pause);
  const { dimension } = speakers;
  const { temperature } = parameters;
  return { clusters: centroids.length / dimension, dimension, shift, centroids, temperature, sums };
}

/** Assigns local speakers, window by window, to the speakers found. */
export function assignSpeakers(model: ClusterModel, speakers: LocalSpeakers): Assignment {
  const compared = shifted(speakers, model.shift);
  const assignment = assignWindows(compared, model.centroids, model.clusters, model.temperature);
  release(compared.embeddings);
  return assignment;
}

interface Found {
  /** [clusters, dimension] */
  readonly centroids: Float32Array;
  /** [clusters] where VBx found them. */
  readonly sums?: readonly SpeakerSum[];
}

/** Centroids from the tree of the local speakers with enough clean speech, and the subsegments. */
async function centroidsFound(
  original: Weighted,
  evidence: Evidence | undefined,
  parameters: ClusteringParameters,
  bounds: SpeakerBounds,
  shift: Float32Array,
  pause: Pause,
): Promise<Found> {
  const candidatesOf = (minCleanSeconds: number, wanted: number): Promise<Candidates> => {
    const training = trainingSet(original, minCleanSeconds, wanted);
    return candidates(withPieces(training, evidence, parameters.bayesian), evidence, shift, parameters, pause);
  };
  const bayesian = isReduced(original) ? forRepresentatives(parameters.bayesian) : parameters.bayesian;
  const first = await candidatesOf(parameters.minCleanSeconds, 1);
  const { dimension } = original.speakers;
  const joining = evidence?.keepFragments ? undefined : bounds;
  const sums = first.space && (await bayesianSpeakers({ ...first, space: first.space }, bayesian, joining, pause));
  const centroids = sums ? centroidsOfSums(sums, dimension) : cutCentroids(first.items, first.tree, parameters);
  if (first.space) release(first.space.features);
  const count = centroids.length / dimension;
  if (count >= bounds.min && (sums !== undefined || count <= bounds.max)) return { centroids, sums };
  const all = { ...original, speakers: shifted(original.speakers, shift) };
  if (count > bounds.max) {
    return { centroids: await centroidsWanted(all, first.items, first.tree, bounds.max, parameters, pause) };
  }
  const larger = await candidatesOf(parameters.minCleanSecondsWanted, bounds.min);
  const more = sums && (await moreThan(sums, larger, bayesian, bounds, pause));
  if (larger.space) release(larger.space.features);
  if (more) return { centroids: centroidsOfSums(more, dimension), sums: more };
  return { centroids: await centroidsWanted(all, larger.items, larger.tree, bounds.min, parameters, pause) };
}

/**
 * More speakers than VBx found. Where each would have little speech, those missed said little, and are what sounds the
 * least like those who were found; where each would have much, two of those found are rather two people each, and VBx
 * is asked again.
 *
 * @returns undefined where there are not enough
 */
async function moreThan(
  found: readonly SpeakerSum[],
  { items, tree, space }: Candidates,
  parameters: BayesianParameters,
  bounds: SpeakerBounds,
  pause: Pause,
): Promise<SpeakerSum[] | undefined> {
  const secondsEach = items.weights.reduce((sum, value) => sum + value, 0) / bounds.min;
  const split =
    secondsEach < parameters.briefSecondsPerSpeaker
      ? await splitOff(found, items, tree, parameters, bounds.min, pause)
      : undefined;
  return split ?? (space && moreSpeakers({ items, tree, space }, parameters, bounds, pause));
}

/** What speakers are found of. */
interface Candidates {
  /** Shifted. */
  readonly items: Weighted;
  readonly tree: Merge[];
  /** Where there is a PLDA. */
  readonly space: BayesianSpace | undefined;
}

/** @param unshifted whose embeddings are given back */
async function candidates(
  unshifted: Weighted,
  evidence: Evidence | undefined,
  shift: Float32Array,
  { sameWindowDistance }: ClusteringParameters,
  pause: Pause,
): Promise<Candidates> {
  const { embeddings, count } = unshifted.speakers;
  const items = { ...unshifted, speakers: shifted(unshifted.speakers, shift) };
  const tree = await treeOf(items, sameWindowDistance, pause);
  // Not before: the distances of the tree are most of what an assembly holds.
  const space = evidence && { features: project(evidence.plda, embeddings, count), phi: evidence.plda.phi };
  await pause();
  release(embeddings);
  return { items, tree, space };
}

/** Representatives have windows of their own, below zero. */
function isReduced({ speakers }: Pick<Weighted, 'speakers'>): boolean {
  return speakers.windows.some((window) => window < 0);
}

function forRepresentatives(parameters: BayesianParameters): BayesianParameters {
  return { ...parameters, initialThreshold: parameters.representativeInitialThreshold };
}

function centroidsOfSums(sums: readonly SpeakerSum[], dimension: number): Float32Array {
  const centroids = new Float32Array(sums.length * dimension);
  sums.forEach(({ sum }, index) => {
    centroids.set(sum, index * dimension);
    normalise(centroids, index * dimension, dimension);
  });
  return centroids;
}

/** Speakers by a cut at the tuned distance. */
function cutCentroids(
  { speakers, weights, seconds }: Weighted,
  tree: readonly Merge[],
  parameters: ClusteringParameters,
): Float32Array {
  const threshold = isReduced({ speakers }) ? parameters.representativeThreshold : parameters.threshold;
  const cut = cutAtHeight(tree, speakers.count, threshold);
  const chosen = largeClusters(cut, seconds, parameters);
  return centroidsOf(speakers, weights, renumber(cut, chosen), chosen.length);
}

async function treeOf({ speakers, weights }: Weighted, sameWindowDistance: number, pause: Pause): Promise<Merge[]> {
  const condensed = await cosineDistances(speakers, pause, sameWindowDistance);
  const tree = await linkage(condensed, speakers.count, 'average', { sizes: weights, pause });
  release(condensed);
  return tree;
}

/**
 * Of the ways to have as many clusters as are wanted, the first that leaves none of them empty, or as few as possible.
 */
async function centroidsWanted(
  all: Weighted,
  { speakers, weights, seconds }: Weighted,
  tree: readonly Merge[],
  wanted: number,
  parameters: ClusteringParameters,
  pause: Pause,
): Promise<Float32Array> {
  let best: { centroids: Float32Array; used: number } | undefined;
  let tries = 0;
  for await (const clusterOf of clustersWanted(tree, seconds, parameters, wanted, pause)) {
    const clusters = clusterOf.reduce((largest, cluster) => Math.max(largest, cluster), 0) + 1;
    const centroids = centroidsOf(speakers, weights, clusterOf, clusters);
    // Clusters may be so alike that the assignment leaves one of them empty.
    const used = new Set(assignWindows(all.speakers, centroids, clusters, parameters.temperature).clusterOf).size;
    if (best === undefined || used > best.used) best = { centroids, used };
    if (used >= Math.min(wanted, all.speakers.count) || ++tries >= MAX_TRIES) break;
    await pause();
  }
  return best!.centroids;
}
