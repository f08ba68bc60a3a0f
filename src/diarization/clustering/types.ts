import type { LocalSpeakers } from '../local-speakers.ts';
import type { Subsegments } from '../subsegments.ts';

/** Parameters of the clustering, by stage, in the order in which `cluster.ts` needs them. */
export interface ClusteringParameters {
  /** Recordings with more local speakers are reduced to so many representatives first. */
  readonly maxItems: number;
  /** Subsegments that take part, at most; those of longer recordings are thinned. */
  readonly maxSubsegments: number;
  /** Local speakers with less speech alone take no part in finding the clusters; they are assigned afterwards. */
  readonly minCleanSeconds: number;
  /** The same once more speakers are wanted than were found: who says little must be found too. */
  readonly minCleanSecondsWanted: number;
  /** Share of the evidence that lies in the subsegments; the rest lies in the local speakers. */
  readonly subsegmentShare: number;
  /** Share of the recording's mean embedding that is taken from every embedding: the room and the channel that all have in common. */
  readonly meanShare: number;
  /** Distance, at least, between two local speakers of one window. */
  readonly sameWindowDistance: number;
  /** Without a PLDA: average cosine distance up to which clusters are merged… */
  readonly linkageThreshold: number;
  /** …and clusters with less than this share of the largest one's speech are dropped. */
  readonly minClusterShare: number;
  /** With a PLDA: distance at which the tree is cut for the clusters to start from: low, because VBx merges and never splits. */
  readonly initialThreshold: number;
  /** Clusters to start from, at most. */
  readonly maxClusters: number;
  /** Share of the recording's mean that is taken from what VBx sees. */
  readonly featureMeanShare: number;
  /** Fa of VBx: how much a second of speech counts. */
  readonly statisticsScale: number;
  /** Fb of VBx: the larger, the fewer speakers remain. */
  readonly speakerRegularisation: number;
  /**
   * Speech that counts as evidence, at most: of longer recordings every second counts for less. With all of a day's seconds the
   * model would explain each person's moods and microphones by speakers of their own.
   */
  readonly maxEvidenceSeconds: number;
  /** Speakers whose prior falls below this share of the largest are dropped. */
  readonly minPriorShare: number;
  /** So are those with less speech. */
  readonly minSpeakerSeconds: number;
  /** The same where more speakers are wanted than were found. */
  readonly wantedMinSpeakerSeconds: number;
  /** Sharpness of the assignment probabilities: softmax of cosine similarity over this. */
  readonly temperature: number;
}

/** What an item of the clustering stands for. Only two local speakers can be of one window. */
export const KIND = { local: 0, representative: 1, subsegment: 2 } as const;

/** What speakers are found of: local speakers, or representatives of a long recording, and subsegments. */
export interface Items {
  readonly count: number;
  readonly dimension: number;
  /** [count, dimension], unit length, the recording's mean not taken off */
  readonly embeddings: Float32Array;
  /** [count] of `KIND` */
  readonly kinds: Uint8Array;
  /** [count] window of a local speaker; of no meaning for others */
  readonly windows: Int32Array;
  /** [count] distinct seconds of speech that each stands for: how much evidence it is */
  readonly seconds: Float64Array;
}

/** Local speakers, of which some may stand for several. */
export type Representing = LocalSpeakers & {
  /** [count] of `KIND`; absent where all are local speakers */ readonly kinds?: Uint8Array;
};

/** Short pieces of speech. In a long recording they are thinned: one in `every` is left. */
export type ThinnedSubsegments = Subsegments & { readonly every: number };

/** How many speakers the caller wants. */
export interface SpeakerBounds {
  readonly min: number;
  readonly max: number;
}

/** How long windows are and how far apart, in seconds. */
export interface WindowSeconds {
  readonly step: number;
  readonly window: number;
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

export type Pause = () => Promise<void>;
