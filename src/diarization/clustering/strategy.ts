import { type LocalSpeakers, select } from '../local-speakers.ts';
import { assignWindows } from './assign.ts';
import { type Clusters, centroidsOf, clusterSeconds, compact, mergeClosest } from './centroids.ts';
import { condensedIndex, cutAtHeight, cutIntoClusters, linkage, type Merge } from './linkage.ts';

export interface ClusteringParameters {
  /** Average cosine distance up to which clusters are merged. */
  readonly threshold: number;
  /** Local speakers with less speech alone take no part in finding the clusters; they are assigned afterwards. */
  readonly minCleanSeconds: number;
  /** Distance, at least, between two local speakers of one window: the segmentation says that they are different people. */
  readonly sameWindowDistance: number;
  /** Clusters with less speech than this are absorbed by the others… */
  readonly minClusterSeconds: number;
  /** …and those with less than this share of the largest. */
  readonly minClusterShare: number;
  /** Rounds of assignment and new centroids after the first clusters. */
  readonly refinements: number;
  /** Recordings with more local speakers are reduced to so many representatives first. */
  readonly maxItems: number;
  /** Sharpness of the assignment probabilities: softmax of cosine similarity over this. */
  readonly temperature: number;
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
  /** [clusters, dimension], unit length */
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

/**
 * Finds the speakers of a recording.
 *
 * Average-linkage clustering of the local speakers with enough clean speech, cut at a tuned distance; small clusters are
 * absorbed; centroids are refined under the rule that two local speakers of one window are two people. A wanted number of
 * speakers is reached by merging the closest clusters, or by undoing the highest merges.
 *
 * @param speakers local speakers of the whole recording, or its representatives, at least one
 * @param secondsPerWindow how much new audio a window brings, to turn sums over overlapping windows into time
 */
export async function findSpeakers(
  speakers: LocalSpeakers,
  parameters: ClusteringParameters,
  bounds: SpeakerBounds,
  secondsPerWindow: { readonly step: number; readonly window: number },
  pause: () => Promise<void> = async () => undefined,
): Promise<ClusterModel> {
  const training = trainingSet(speakers, parameters.minCleanSeconds, bounds.min);
  const merges = await linkage(await distances(training, parameters, pause), training.count, 'average', { pause });
  const toSeconds = secondsPerWindow.step / secondsPerWindow.window;
  let clusters = startingClusters(training, merges, parameters, bounds, toSeconds);
  for (let round = 0; round < parameters.refinements && clusters.count > 1; round++) {
    const { clusterOf } = assignWindows(training, clusters.centroids, clusters.count, parameters.temperature);
    const refined = compact(training, clusterOf, clusters.count);
    // A round that empties a cluster would change the number of speakers behind the bounds' back.
    if (refined.count < clusters.count) break;
    clusters = refined;
    await pause();
  }
  const { count, centroids } = clusters;
  return { clusters: count, dimension: training.dimension, centroids, temperature: parameters.temperature };
}

/** Assigns local speakers, window by window, to the speakers found. */
export function assignSpeakers(model: ClusterModel, speakers: LocalSpeakers): Assignment {
  return assignWindows(speakers, model.centroids, model.clusters, model.temperature);
}

/** Those with enough clean speech; where they are fewer than the speakers wanted, the cleanest, and at least one. */
function trainingSet(speakers: LocalSpeakers, minCleanSeconds: number, wanted: number): LocalSpeakers {
  const byQuality = Array.from({ length: speakers.count }, (_, row) => row).sort(
    (a, b) => speakers.cleanSeconds[b]! - speakers.cleanSeconds[a]! || a - b,
  );
  const good = byQuality.filter((row) => speakers.cleanSeconds[row]! >= minCleanSeconds);
  const chosen = good.length >= wanted ? good : byQuality.slice(0, Math.max(1, wanted));
  return select(
    speakers,
    chosen.sort((a, b) => a - b),
  );
}

async function distances(
  speakers: LocalSpeakers,
  parameters: ClusteringParameters,
  pause: () => Promise<void>,
): Promise<Float32Array> {
  const { count, dimension, embeddings, windows } = speakers;
  const out = new Float32Array((count * (count - 1)) / 2);
  for (let i = 0; i < count; i++) {
    if (i % 64 === 63) await pause();
    for (let j = i + 1; j < count; j++) {
      let product = 0;
      for (let d = 0; d < dimension; d++) product += embeddings[i * dimension + d]! * embeddings[j * dimension + d]!;
      const distance = Math.max(0, 1 - product);
      out[condensedIndex(i, j, count)] =
        windows[i] === windows[j] ? Math.max(distance, parameters.sameWindowDistance) : distance;
    }
  }
  return out;
}

function startingClusters(
  training: LocalSpeakers,
  merges: readonly Merge[],
  parameters: ClusteringParameters,
  bounds: SpeakerBounds,
  toSeconds: number,
): Clusters {
  const cut = cutAtHeight(merges, training.count, parameters.threshold);
  const found = absorbSmall(training, cut, parameters, toSeconds, 1);
  if (found.count > bounds.max) return mergeClosest(found, bounds.max);
  if (found.count >= bounds.min) return found;
  // Too few: undo merges from the top, first for clusters of the usual size, then for ever smaller ones.
  for (const scale of [1, 0.5, 0.25, 0]) {
    for (let clusters = bounds.min; clusters <= training.count; clusters++) {
      const finer = cutIntoClusters(merges, training.count, clusters);
      const split = absorbSmall(training, finer, parameters, toSeconds, scale);
      if (split.count >= bounds.min) return split.count > bounds.max ? mergeClosest(split, bounds.max) : split;
    }
  }
  return absorbSmall(training, cutIntoClusters(merges, training.count, training.count), parameters, toSeconds, 0);
}

/** Clusters with enough speech; the items of the others will go to the closest of these. The largest always stays. */
function absorbSmall(
  training: LocalSpeakers,
  clusterOf: Int32Array,
  parameters: ClusteringParameters,
  toSeconds: number,
  scale: number,
): Clusters {
  const seconds = clusterSeconds(training, clusterOf).map((sum) => sum * toSeconds);
  const largest = Math.max(...seconds);
  const needed = scale * Math.max(parameters.minClusterSeconds, parameters.minClusterShare * largest);
  const keep = seconds.map((sum) => sum >= needed || sum === largest);
  return centroidsOf(training, clusterOf, keep);
}
