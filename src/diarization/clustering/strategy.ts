import { type LocalSpeakers, select } from '../local-speakers.ts';
import { assignWindows } from './assign.ts';
import { type BayesianParameters, bayesianCentroids } from './bayesian.ts';
import { centroidsOf, largeClusters, renumber, type SizeLimits } from './centroids.ts';
import { distinctSeconds, embeddingWeights, meanShift, shifted, type WindowSeconds } from './items.ts';
import { condensedIndex, cutAtHeight, linkage, type Merge } from './linkage.ts';
import { type Plda, project } from './plda.ts';
import { clustersWanted } from './wanted.ts';

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
  /** Distance, at least, between two local speakers of one window: the segmentation says that they are different people. */
  readonly sameWindowDistance: number;
  /** Where a wanted number of speakers is not found, clusters further apart than this are not split before small ones are taken. */
  readonly coarseDistance: number;
  /** Rounds of assignment and new centroids after the first clusters. */
  readonly refinements: number;
  /** Recordings with more local speakers are reduced to so many representatives first. */
  readonly maxItems: number;
  /** Sharpness of the assignment probabilities: softmax of cosine similarity over this. */
  readonly temperature: number;
  /** Used where the embedder comes with a PLDA. */
  readonly bayesian: BayesianParameters;
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

/** Local speakers with what clustering needs of them; embeddings are shifted. */
interface Weighted {
  readonly speakers: LocalSpeakers;
  /** [count] */
  readonly weights: Float64Array;
  /** [count] speech that each adds to the recording */
  readonly seconds: Float64Array;
  /** Row of each among all local speakers. */
  readonly rows: Int32Array;
}

export interface FindOptions {
  readonly pause?: Pause;
  /** Of the embedder that made the embeddings. */
  readonly plda?: Plda;
}

/**
 * Finds the speakers of a recording.
 *
 * Average-linkage clustering of the local speakers with enough clean speech: cut at a tuned distance, small clusters absorbed
 * by the others; or, with a PLDA and enough speech, cut low and left to VBx. Centroids are refined under the rule that two
 * local speakers of one window are two people. A wanted number of speakers is read off the same tree. The same as
 * `training/calibration/clustering.py`.
 *
 * @param speakers local speakers of the whole recording, or its representatives, at least one
 */
export async function findSpeakers(
  speakers: LocalSpeakers,
  parameters: ClusteringParameters,
  bounds: SpeakerBounds,
  windowSeconds: WindowSeconds,
  options: FindOptions = {},
): Promise<ClusterModel> {
  const { pause = async () => undefined, plda } = options;
  const weights = embeddingWeights(speakers);
  const shift = meanShift(speakers, weights, parameters.meanShare);
  const rows = Int32Array.from({ length: speakers.count }, (_, row) => row);
  const all = { speakers: shifted(speakers, shift), weights, seconds: distinctSeconds(speakers, windowSeconds), rows };
  const evidence = plda === undefined ? undefined : { plda, embeddings: speakers };
  let centroids = await startingCentroids(all, evidence, parameters, bounds, pause);
  const clusters = centroids.length / speakers.dimension;
  let previous: Int32Array | undefined;
  for (let round = 0; round < parameters.refinements && clusters > 1; round++) {
    const found = assignWindows(all.speakers, centroids, clusters, parameters.temperature).clusterOf;
    // Without a change this was the last round; with an empty cluster the number of speakers would not stay.
    if (equal(found, previous) || new Set(found).size < clusters) break;
    centroids = centroidsOf(all.speakers, weights, found, clusters);
    previous = found;
    await pause();
  }
  return { clusters, dimension: speakers.dimension, shift, centroids, temperature: parameters.temperature };
}

/** Assigns local speakers, window by window, to the speakers found. */
export function assignSpeakers(model: ClusterModel, speakers: LocalSpeakers): Assignment {
  return assignWindows(shifted(speakers, model.shift), model.centroids, model.clusters, model.temperature);
}

/** Those with enough clean speech; where they are fewer than the speakers wanted, the cleanest, and at least one. */
function trainingSet({ speakers, weights, seconds }: Weighted, minCleanSeconds: number, wanted: number): Weighted {
  const byQuality = Array.from({ length: speakers.count }, (_, row) => row).sort(
    (a, b) => speakers.cleanSeconds[b]! - speakers.cleanSeconds[a]! || a - b,
  );
  const good = byQuality.filter((row) => speakers.cleanSeconds[row]! >= minCleanSeconds);
  const rows = good.length >= wanted && good.length > 0 ? good : byQuality.slice(0, Math.max(1, wanted));
  rows.sort((a, b) => a - b);
  const pick = (values: Float64Array) => Float64Array.from(rows, (row) => values[row]!);
  return {
    speakers: select(speakers, rows),
    weights: pick(weights),
    seconds: pick(seconds),
    rows: Int32Array.from(rows),
  };
}

/** A PLDA and the embeddings as the embedder gave them. */
interface Evidence {
  readonly plda: Plda;
  readonly embeddings: LocalSpeakers;
}

/** [clusters, dimension] from the tree of the local speakers with enough clean speech. */
async function startingCentroids(
  all: Weighted,
  evidence: Evidence | undefined,
  parameters: ClusteringParameters,
  bounds: SpeakerBounds,
  pause: Pause,
): Promise<Float32Array> {
  const training = trainingSet(all, parameters.minCleanSeconds, 1);
  const { speakers, seconds } = training;
  const tree = await treeOf(training, parameters.sameWindowDistance, pause);
  const total = seconds.reduce((sum, value) => sum + value, 0);
  const found =
    evidence !== undefined && total >= parameters.bayesian.minSeconds
      ? bayesianCentroids(withFeatures(training, evidence), tree, parameters.bayesian)
      : cutCentroids(training, tree, parameters);
  const count = found.length / speakers.dimension;
  if (count > bounds.max) return centroidsWanted(all, training, tree, bounds.max, parameters, pause);
  if (count >= bounds.min) return found;
  const larger = trainingSet(all, parameters.minCleanSecondsWanted, bounds.min);
  const largerTree = await treeOf(larger, parameters.sameWindowDistance, pause);
  return centroidsWanted(all, larger, largerTree, bounds.min, parameters, pause);
}

/** Speakers by a cut at the tuned distance. */
function cutCentroids(
  { speakers, weights, seconds }: Weighted,
  tree: readonly Merge[],
  parameters: ClusteringParameters,
): Float32Array {
  const isReduced = speakers.windows.some((window) => window < 0);
  const threshold = isReduced ? parameters.representativeThreshold : parameters.threshold;
  const cut = cutAtHeight(tree, speakers.count, threshold);
  const chosen = largeClusters(cut, seconds, parameters);
  return centroidsOf(speakers, weights, renumber(cut, chosen), chosen.length);
}

function withFeatures({ speakers, weights, seconds, rows }: Weighted, { plda, embeddings }: Evidence) {
  const original = select(embeddings, Array.from(rows)).embeddings;
  return { speakers, weights, seconds, features: project(plda, original, speakers.count), phi: plda.phi };
}

async function treeOf({ speakers, weights }: Weighted, sameWindowDistance: number, pause: Pause): Promise<Merge[]> {
  const condensed = await distances(speakers, sameWindowDistance, pause);
  return linkage(condensed, speakers.count, 'average', { sizes: weights, pause });
}

/** Of the ways to have as many clusters as are wanted, the first that leaves none of them empty, or as few as possible. */
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
  for (const clusterOf of clustersWanted(tree, seconds, parameters, wanted)) {
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

async function distances(speakers: LocalSpeakers, sameWindowDistance: number, pause: Pause): Promise<Float32Array> {
  const { count, dimension, embeddings, windows } = speakers;
  const out = new Float32Array((count * (count - 1)) / 2);
  for (let i = 0; i < count; i++) {
    if (i % 64 === 63) await pause();
    for (let j = i + 1; j < count; j++) {
      let product = 0;
      for (let d = 0; d < dimension; d++) product += embeddings[i * dimension + d]! * embeddings[j * dimension + d]!;
      const distance = Math.max(0, 1 - product);
      out[condensedIndex(i, j, count)] = windows[i] === windows[j] ? Math.max(distance, sameWindowDistance) : distance;
    }
  }
  return out;
}

function equal(a: Int32Array, b: Int32Array | undefined): boolean {
  return b !== undefined && a.every((value, index) => value === b[index]);
}
