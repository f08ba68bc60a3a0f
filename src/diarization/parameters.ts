import type { Tuning, TuningBySetting } from './model-ports.ts';

/** Parameters of the clustering, by stage, in the order in which `cluster.ts` needs them. */
export interface ClusteringParameters {
  /** Recordings with more local speakers are reduced to this number of representatives first. */
  readonly maxItems: number;
  /** Subsegments that take part, at most; those of longer recordings are thinned. */
  readonly maxSubsegments: number;
  /**
   * Local speakers with less clean speech are left out of the clustering; they are assigned to its speakers later.
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

/** Calibration of confidence values: logistic regression on the log-odds of the raw probability (Platt scaling). */
export interface ConfidenceParameters {
  readonly slope: number;
  readonly offset: number;
}

/** Both settings have these parameters; they differ in their segmentation (`segmentationOf`) and a model's tuning. */
export type SettingName = 'precision-2' | 'community-1';

/**
 * All parameters of the pipeline, by stage. Numbers and booleans only, so that a model's manifest can override each by
 * name.
 */
export interface DiarizationSettings {
  readonly name: SettingName;
  readonly windows: {
    /** Distance between the starts of two windows; at most half a window, so that every frame is seen twice. */
    readonly stepSamples: number;
  };
  readonly localSpeakers: {
    /** Local speakers who are active for less get no embedding and no part in the result. */
    readonly minActiveSeconds: number;
    /** Below this much speech alone, the embedding is taken over all of the speaker's frames, overlapped ones too. */
    readonly minCleanSeconds: number;
  };
  readonly subsegments: {
    /** Subsegments with less speech of one person alone have no embedding. */
    readonly minCleanSeconds: number;
    /** How much the subsegments have to say about who speaks where one person does: 0 nothing, 1 everything. */
    readonly weight: number;
    /** Sharpness of their say: softmax of cosine similarity over this. */
    readonly temperature: number;
  };
  readonly clustering: ClusteringParameters;
  readonly reconstruction: {
    /** Weigh a window's frames by how far they are from its edges: the model sees less context there. 0 no, 1 fully. */
    readonly edgeTaper: number;
    /**
     * Added to the expected number of speakers at once before it is rounded: below zero, crosstalk needs more evidence.
     */
    readonly countBias: number;
    /** Pauses of one speaker up to this long become part of the turn. */
    readonly minDurationOffSeconds: number;
    /** Turns shorter than this are dropped. */
    readonly minDurationOnSeconds: number;
  };
  readonly confidence: ConfidenceParameters;
}

const SHARED: Omit<DiarizationSettings, 'name'> = {
  windows: { stepSamples: 80000 },
  localSpeakers: { minActiveSeconds: 0.1, minCleanSeconds: 0.4 },
  subsegments: { minCleanSeconds: 0.4, weight: 0.95, temperature: 0.1 },
  clustering: {
    maxItems: 2400,
    maxSubsegments: 800,
    minCleanSeconds: 1,
    minCleanSecondsWanted: 0.3,
    subsegmentShare: 0.7,
    meanShare: 0.25,
    sameWindowDistance: 1.2,
    linkageThreshold: 0.6,
    minClusterShare: 0.06,
    initialThreshold: 0.5,
    maxClusters: 100,
    featureMeanShare: 0.5,
    statisticsScale: 0.8,
    speakerRegularisation: 2.5,
    maxEvidenceSeconds: 400,
    minPriorShare: 0.02,
    minSpeakerSeconds: 1,
    wantedMinSpeakerSeconds: 0.3,
    temperature: 0.1,
  },
  reconstruction: {
    // Two windows cover a frame: without the taper their disagreements would be ties.
    edgeTaper: 0.5,
    countBias: -0.15,
    minDurationOffSeconds: 0.1,
    minDurationOnSeconds: 0.1,
  },
  confidence: { slope: 0.545, offset: 0.372 },
};

/** Parameters of a setting before a model's own tuning. */
export function settingsOf(name: SettingName): DiarizationSettings {
  return { ...SHARED, name };
}

/**
 * Lays a model's tuned values over the settings: `all` first, then those of the setting's own name.
 * @throws when a name is unknown or of another type: the manifest is wrong
 */
export function withTuning(settings: DiarizationSettings, tuned: TuningBySetting): DiarizationSettings {
  let result = settings;
  for (const name of ['all', settings.name]) {
    const overrides = tuned[name];
    if (overrides !== undefined) result = override(result, overrides, `tuned.${name}`);
  }
  return result;
}

function override<T extends object>(target: T, overrides: Tuning, at: string): T {
  const result = { ...target } as Record<string, unknown>;
  for (const [name, value] of Object.entries(overrides)) {
    const current = result[name];
    if (typeof value === 'object') {
      if (typeof current !== 'object' || current === null) throw new Error(`${at}.${name} is no group of parameters`);
      result[name] = override(current, value, `${at}.${name}`);
    } else {
      if (typeof current !== typeof value) throw new Error(`${at}.${name} is no ${typeof value} parameter`);
      result[name] = value;
    }
  }
  return result as T;
}
