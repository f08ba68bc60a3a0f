import type { Tuning, TuningBySetting } from './model-ports.ts';

/** Parameters of the clustering, by stage, in the order of their use in `cluster.ts`. */
export interface ClusteringParameters {
  /** Recordings with more local speakers are first reduced to this number of representatives. */
  readonly maxItems: number;
  /** Maximum number of subsegments; more are thinned. */
  readonly maxSubsegments: number;
  /** Share of the subsegments in the evidence; the local speakers have the rest. */
  readonly subsegmentShare: number;
  /** Share of the recording's mean that is subtracted from embeddings and features of VBx: effects of room and channel. */
  readonly meanShare: number;
  /** Without a PLDA: average cosine distance up to which clusters are merged. */
  readonly linkageThreshold: number;
  /** Without a PLDA: clusters with less than this share of the largest one's speech, or less than a second, are dropped. */
  readonly minClusterShare: number;
  /** With a PLDA: distance of the first cut of the tree for VBx; low, because VBx merges and never splits. */
  readonly initialThreshold: number;
  /** Maximum number of initial clusters. */
  readonly maxClusters: number;
  /** Fa of VBx: weight of a second of speech. */
  readonly statisticsScale: number;
  /** Fb of VBx: the larger, the fewer speakers remain. */
  readonly speakerRegularisation: number;
  /** After this many seconds of speech a further second counts half as evidence, see `evidenceShare`. */
  readonly evidenceSaturationSeconds: number;
  /** Temperature of the assignment probabilities, a softmax of cosine similarities. */
  readonly temperature: number;
}

/** Calibration of confidence values: logistic regression on the log-odds of the raw probability (Platt scaling). */
export interface ConfidenceParameters {
  readonly slope: number;
  readonly offset: number;
}

/** Both settings have the same parameters; they differ in their segmentations (`segmentationsFor`) and its tuning. */
export type SettingName = 'precision-2' | 'community-1';

/**
 * All parameters of the pipeline, by stage. Only numbers and booleans, so that a model's manifest can override each by
 * name.
 */
export interface DiarizationSettings {
  readonly name: SettingName;
  readonly windows: {
    /** Distance between two window starts; at most half a window, so that two windows cover every frame. */
    readonly stepSamples: number;
  };
  readonly localSpeakers: {
    /** Local speakers who are active for less are ignored. */
    readonly minActiveSeconds: number;
    /** With less clean speech, the embedding is taken from all frames of the speaker, overlapped ones too. */
    readonly minCleanSeconds: number;
  };
  readonly subsegments: {
    /** Subsegments with less single-speaker speech have no embedding. */
    readonly minCleanSeconds: number;
    /** Weight of the subsegments in single-speaker frames: 0 none, 1 all. */
    readonly weight: number;
    /** Temperature of their posteriors, a softmax of cosine similarities. */
    readonly temperature: number;
  };
  readonly clustering: ClusteringParameters;
  readonly reconstruction: {
    /** Added to the expected number of speakers at once before rounding; if negative, crosstalk needs more evidence. */
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
    subsegmentShare: 0.7,
    meanShare: 0.25,
    linkageThreshold: 0.6,
    minClusterShare: 0.06,
    initialThreshold: 0.5,
    maxClusters: 100,
    statisticsScale: 2,
    speakerRegularisation: 2.5,
    evidenceSaturationSeconds: 15,
    temperature: 0.1,
  },
  reconstruction: {
    countBias: -0.1,
    minDurationOffSeconds: 0.1,
    minDurationOnSeconds: 0.1,
  },
  confidence: { slope: 0.665, offset: 0.607 },
};

/** Parameters of a setting before the tuning of a model. */
export function settingsOf(name: SettingName): DiarizationSettings {
  return { ...SHARED, name };
}

/**
 * Overrides settings with a model's tuned values: `all` first, then those under the name of the setting.
 * @throws if a name is unknown or a value has another type: the manifest is wrong
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
