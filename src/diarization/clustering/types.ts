import type { LocalSpeakers } from '../local-speakers.ts';
import type { Subsegments } from '../subsegments.ts';

/** Parameters of the clustering, by stage, in the order in which `cluster.ts` needs them. */
export interface ClusteringParameters {
  /** Recordings with more local speakers are reduced to so many representatives first. */
  readonly maxItems: number;
  /** Subsegments that take part, at most; those of longer recordings are thinned. */
  readonly maxSubsegments: number;
  /**
   * Local speakers with less clean speech are left out of the clustering; they are assigned to its speakers afterwards.
   */
  readonly minCleanSeconds: number;
  /** The same where more speakers are wanted than were found. */
  readonly minCleanSecondsWanted: number;
  /** Share of the evidence that lies in the subsegments; the rest lies in the local speakers. */
  readonly subsegmentShare: number;
  /**
   * Share of the recording's mean embedding that is taken off every embedding: the room and the channel, which all
   * share.
   */
  readonly meanShare: number;
  /** Distance, at least, between two local speakers of one window. */
  readonly sameWindowDistance: number;
  /** Without a PLDA: average cosine distance up to which clusters are merged… */
  readonly linkageThreshold: number;
  /** …and clusters with less than this share of the largest one's speech are dropped. */
  readonly minClusterShare: number;
  /**
   * With a PLDA: distance of the first cut of the tree that VBx starts from; low, because VBx merges and never splits.
   */
  readonly initialThreshold: number;
  /** Clusters to start from, at most. */
  readonly maxClusters: number;
  /** Share of the recording's mean that is taken off the features of VBx. */
  readonly featureMeanShare: number;
  /** Fa of VBx: how much a second of speech counts. */
  readonly statisticsScale: number;
  /** Fb of VBx: the larger, the fewer speakers remain. */
  readonly speakerRegularisation: number;
  /**
   * Evidence of a recording in seconds of speech, at most: in longer recordings every second has less weight. With all
   * seconds of a day, one person's changes of voice and microphone would become speakers of their own.
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

/** Kinds of items. Only local speakers belong to a window. */
export const KIND = { local: 0, representative: 1, subsegment: 2 } as const;

/** What is clustered: local speakers, or representatives of a long recording, and subsegments. */
export interface Items {
  readonly count: number;
  readonly dimension: number;
  /** [count, dimension], unit length, before the recording's mean is taken off */
  readonly embeddings: Float32Array;
  /** [count] of `KIND` */
  readonly kinds: Uint8Array;
  /** [count] window of a local speaker; 0 for other kinds */
  readonly windows: Int32Array;
  /** [count] distinct seconds of speech that each stands for: its weight as evidence */
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
