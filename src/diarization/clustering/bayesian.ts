import { release } from '../../audio/memory.ts';
import type { LocalSpeakers } from '../local-speakers.ts';
import { dot } from '../vectors.ts';
import { type AlikeParameters, joinAlike, joinDown, type SpeakerSum } from './alike.ts';
import { centroidsOf, largeClusters, renumber } from './centroids.ts';
import { cutAtHeight, type Merge } from './linkage.ts';
import type { SplitParameters } from './split-off.ts';
import { VBX_DEFAULTS, type VbxResult, vbx } from './vbx.ts';
import type { EvidenceShares } from './weighted.ts';

export interface BayesianParameters extends AlikeParameters, SplitParameters, EvidenceShares {
  /** Subsegments that take part, at most. */
  readonly maxSubsegments: number;
  /** Distance at which the tree is cut for the clusters to start from: low, because VBx merges and never splits. */
  readonly initialThreshold: number;
  /** The same between representatives of a long recording, which are means and so lie closer together. */
  readonly representativeInitialThreshold: number;
  /** Clusters to start from, at most. */
  readonly maxClusters: number;
  /** Fa of VBx: how much a second of speech counts. */
  readonly statisticsScale: number;
  /** Fb of VBx: the larger, the fewer speakers remain… */
  readonly speakerRegularisation: number;
  /**
   * …where each of them has up to so much speech on average. Where they have more it grows: over minutes a voice changes by what
   * is not in a PLDA of short pieces, and would be taken for several…
   */
  readonly plainSecondsPerSpeaker: number;
  /** …up to this. */
  readonly maxRegularisation: number;
  /**
   * Speech that counts as evidence, at most: of longer recordings every second counts for less. With all of a day's seconds the
   * model would explain each person's moods and microphones by speakers of their own.
   */
  readonly maxEvidenceSeconds: number;
  /** Speakers whose prior falls below this share of the largest are dropped. */
  readonly minPriorShare: number;
  /** So are those with less speech. */
  readonly minSpeakerSeconds: number;
  /** More speakers are wanted than were found, and each would have less speech than this: those missed are taken to have said little. */
  readonly briefSecondsPerSpeaker: number;
}

/** Local speakers with enough clean speech, and subsegments. */
export interface BayesianItems {
  /** Shifted embeddings. */
  readonly speakers: LocalSpeakers;
  /** [count] how much each counts in a centroid */
  readonly weights: Float64Array;
  /** [count] distinct seconds, how much evidence each is */
  readonly seconds: Float64Array;
}

/** The items in the PLDA's space. */
export interface BayesianSpace {
  /** [count, phi.length] of the embeddings before the shift */
  readonly features: Float64Array;
  readonly phi: Float64Array;
}

/** What speakers are found of. */
export interface BayesianInput {
  readonly items: BayesianItems;
  readonly space: BayesianSpace;
  /** Linkage tree of the items. */
  readonly tree: readonly Merge[];
}

/** How many speakers are wanted. */
interface CountBounds {
  readonly min: number;
  readonly max: number;
}

type Pause = () => Promise<void>;

/** Rounds of more regularisation, at most: each leaves fewer speakers, who have more speech on average. */
const MAX_ROUNDS = 6;
/** Too many speakers have less speech each, which would keep them from being made fewer: hence more than in proportion. */
const GROWTH_EXPONENT = 2;
const MAX_ITERATIONS = 40;
/** The bound grows with the evidence; what a second gains by less than this moves no speaker. */
const EPSILON_PER_SECOND = 1e-5;
/** Less of a rise is not worth a round. */
const MIN_RISE = 1.1;
/** Where more speakers are wanted, the regularisation falls by so much a round… */
const WANTED_FALL = 1.5;
/** …down to this, below which VBx explains moods and microphones. */
const MIN_REGULARISATION = 0.05;

/**
 * Speakers by variational Bayes: VBx (see `vbx.ts`) in a PLDA space, started from a low cut of the linkage tree. Items count by
 * their distinct seconds, since overlapping windows hear the same speech; of a long recording it finds the number of speakers
 * better than any distance does. Where it finds more than are wanted they are joined. The same as `training/calibration/clustering.py`.
 *
 * @param bounds of the number of speakers: alike ones are not joined below the least; undefined leaves all that VBx found as they are
 * @returns most speech first; at most as many as are wanted, maybe fewer
 */
export async function bayesianSpeakers(
  { items, space, tree }: BayesianInput,
  parameters: BayesianParameters,
  bounds: CountBounds | undefined,
  pause: Pause,
): Promise<SpeakerSum[]> {
  const run = regularised(items, space, parameters, pause);
  const total = totalSeconds(items);
  let initial = startingClusters(items, tree, parameters);
  let speakerRegularisation = parameters.speakerRegularisation;
  for (let round = 1; ; round++) {
    const result = await run(initial, speakerRegularisation);
    const speakers = speakersOf(result, items.seconds, parameters);
    const growth = (total / speakers.length / parameters.plainSecondsPerSpeaker) ** GROWTH_EXPONENT;
    const wanted = Math.min(parameters.maxRegularisation, parameters.speakerRegularisation * growth);
    if (wanted <= MIN_RISE * speakerRegularisation || round === MAX_ROUNDS) {
      return withinBounds(bounds, sumsOfSpeakers(items, result, speakers), parameters);
    }
    speakerRegularisation = wanted;
    initial = likeliest(result, speakers);
    release(result.gamma);
  }
}

/**
 * The same where that finds fewer speakers than are wanted: from a lower cut, with ever less regularisation and with people who hardly
 * say anything, until enough are found. Most of those found before are found again, so that one more speaker costs the others nothing;
 * a finer cut of the tree would split whoever speaks most.
 *
 * @returns undefined where there are not enough however little is asked of them
 */
export async function moreSpeakers(
  { items, space, tree }: BayesianInput,
  parameters: BayesianParameters,
  bounds: CountBounds,
  pause: Pause,
): Promise<SpeakerSum[] | undefined> {
  const run = regularised(items, space, parameters, pause);
  const { speakerRegularisation, wantedInitialThreshold, wantedMinSpeakerSeconds } = parameters;
  const initial = startingClusters(items, tree, { ...parameters, initialThreshold: wantedInitialThreshold });
  const kept = { minPriorShare: 0, minSpeakerSeconds: wantedMinSpeakerSeconds };
  for (let fb = speakerRegularisation; fb > MIN_REGULARISATION; fb /= WANTED_FALL) {
    const result = await run(initial, fb);
    const speakers = speakersOf(result, items.seconds, kept);
    if (speakers.length >= bounds.min) {
      return withinBounds(bounds, sumsOfSpeakers(items, result, speakers), parameters);
    }
    release(result.gamma);
  }
  return undefined;
}

/** VBx on the items, of which a long recording's seconds count for less. */
function regularised(
  items: BayesianItems,
  { features, phi }: BayesianSpace,
  { statisticsScale, maxEvidenceSeconds }: BayesianParameters,
  pause: Pause,
): (initial: Int32Array, speakerRegularisation: number) => Promise<VbxResult> {
  const { seconds } = items;
  const total = totalSeconds(items);
  const share = Math.min(1, maxEvidenceSeconds / total);
  const weights = share < 1 ? seconds.map((value) => share * value) : seconds;
  const epsilon = EPSILON_PER_SECOND * share * total;
  const { initSmoothing } = VBX_DEFAULTS;
  return (initial, speakerRegularisation) => {
    const settings = { statisticsScale, speakerRegularisation, initSmoothing, maxIterations: MAX_ITERATIONS, epsilon };
    return vbx(features, phi, initial, settings, { weights, pause });
  };
}

function totalSeconds({ seconds }: BayesianItems): number {
  return seconds.reduce((sum, value) => sum + value, 0);
}

function withinBounds(
  bounds: CountBounds | undefined,
  sums: readonly SpeakerSum[],
  parameters: AlikeParameters,
): SpeakerSum[] {
  if (bounds === undefined) return [...sums].sort((a, b) => b.weight - a.weight);
  return joinDown(joinAlike(sums, parameters, bounds.min), bounds.max);
}

/** [count] the cluster of each item to start from: those of a low cut with most speech, and the nearest of them for the rest. */
function startingClusters(
  { speakers, weights, seconds }: BayesianItems,
  tree: readonly Merge[],
  { initialThreshold, maxClusters }: BayesianParameters,
): Int32Array {
  const { count, dimension, embeddings } = speakers;
  const cut = cutAtHeight(tree, count, initialThreshold);
  const largest = largeClusters(cut, seconds, { minClusterSeconds: 0, minClusterShare: 0 }).slice(0, maxClusters);
  const centroids = centroidsOf(speakers, weights, renumber(cut, largest), largest.length);
  return Int32Array.from({ length: count }, (_, row) => {
    let best = 0;
    let highest = Number.NEGATIVE_INFINITY;
    for (let cluster = 0; cluster < largest.length; cluster++) {
      const score = dot(embeddings, row * dimension, centroids, cluster * dimension, dimension);
      if (score > highest) [best, highest] = [cluster, score];
    }
    return best;
  });
}

/** Which of VBx's speakers remain, most speech first; at least one. */
function speakersOf(
  { gamma, pi, speakers }: VbxResult,
  seconds: Float64Array,
  { minPriorShare, minSpeakerSeconds }: Pick<BayesianParameters, 'minPriorShare' | 'minSpeakerSeconds'>,
): number[] {
  const speech = Array.from({ length: speakers }, (_, k) =>
    seconds.reduce((sum, s, row) => sum + s * gamma[row * speakers + k], 0),
  );
  const all = Array.from(pi, (_, k) => k).sort((a, b) => pi[b] - pi[a] || a - b);
  const least = minPriorShare * pi[all[0]];
  const kept = all.filter((k) => pi[k] >= least && speech[k] >= minSpeakerSeconds);
  return kept.length > 0 ? kept : all.slice(0, 1);
}

/** [count] index in `chosen` of the speaker to whom each item most likely belongs */
function likeliest({ gamma, speakers }: VbxResult, chosen: readonly number[]): Int32Array {
  return Int32Array.from({ length: gamma.length / speakers }, (_, row) => {
    let best = 0;
    for (let index = 1; index < chosen.length; index++) {
      if (gamma[row * speakers + chosen[index]] > gamma[row * speakers + chosen[best]]) best = index;
    }
    return best;
  });
}

function sumsOfSpeakers(
  { speakers: { count, dimension, embeddings }, weights }: BayesianItems,
  { gamma, speakers }: VbxResult,
  chosen: readonly number[],
): SpeakerSum[] {
  return chosen.map((k) => {
    const sum = new Float64Array(dimension);
    let total = 0;
    for (let row = 0; row < count; row++) {
      const weight = weights[row] * gamma[row * speakers + k];
      total += weight;
      for (let d = 0; d < dimension; d++) sum[d] += weight * embeddings[row * dimension + d];
    }
    return { sum, weight: total };
  });
}
