import { SAMPLE_RATE_HZ } from '../audio/audio-ports.ts';
import type { LiveSettings } from './live-session.ts';

/** How a stream is cut up in time. All in samples at 16 kHz. */
export interface LiveTiming {
  /** Distance of two windows. */
  readonly hopSamples: number;
  /** Audio after a moment that the decision about it waits for. */
  readonly lookaheadSamples: number;
  /** Length of a window of the segmentation. */
  readonly windowSamples: number;
  /** Length of the longer window that is segmented where a local speaker seems new. */
  readonly wideSamples: number;
  /** How long the embedder's frames are kept: until a span is sent and may be corrected. */
  readonly memorySamples: number;
  /** How much longer a local speaker without a label may be held back. */
  readonly maxPendingSamples: number;
  /** Earlier windows that are averaged with a window. */
  readonly mergedWindows: number;
  /** Speech that a new speaker needs. */
  readonly minNewSpeakerSeconds: number;
}

/** Short latencies: more windows, and less speech for a new speaker. */
const TIMINGS = [
  { belowMs: 750, hopSamples: 4000, mergedWindows: 5, minNewSpeakerSeconds: 0.4 },
  { belowMs: 1750, hopSamples: 6400, mergedWindows: 3, minNewSpeakerSeconds: 0.7 },
  { belowMs: Number.POSITIVE_INFINITY, hopSamples: 9600, mergedWindows: 3, minNewSpeakerSeconds: 0.7 },
] as const;
/** Below this latency no local speaker is held back. */
const PENDING_FROM_SECONDS = 0.5;
const LOOKAHEAD_GRID_SAMPLES = 1600;
/** Length of the frames that audio arrives in. */
const FRAME_SAMPLES = 1600;
/** Least length of a window before the frames that are decided by it. */
const LEAST_PAST_SAMPLES = 2.5 * SAMPLE_RATE_HZ;

/**
 * The latency is the longest time from a moment to its event for a known speaker, computing excepted: look-ahead, hop,
 * and the wait for the end of a frame of audio. On average it is half a hop less.
 */
export function timingOf({ latencyMs }: Pick<LiveSettings, 'latencyMs'>): LiveTiming {
  const { hopSamples, mergedWindows, minNewSpeakerSeconds } = TIMINGS.find(({ belowMs }) => latencyMs < belowMs)!;
  // Hops are whole or half frames of 100 ms; a window waits for the end of the frame in which it ends.
  const frameWaitSamples = hopSamples % FRAME_SAMPLES;
  const wanted = (latencyMs / 1000) * SAMPLE_RATE_HZ - hopSamples - frameWaitSamples;
  const lookaheadSamples = Math.max(0, Math.floor(wanted / LOOKAHEAD_GRID_SAMPLES)) * LOOKAHEAD_GRID_SAMPLES;
  const windowSamples = Math.max(LIVE.windowSamples, lookaheadSamples + LEAST_PAST_SAMPLES);
  const wideSamples = Math.max(LIVE.wideSamples, windowSamples);
  const pendingSeconds = Math.max(0, latencyMs / 1000 - PENDING_FROM_SECONDS);
  const maxPendingSamples = Math.min(LIVE.maxPendingSeconds, pendingSeconds) * SAMPLE_RATE_HZ;
  const memorySamples = LIVE.sentSpanSeconds * SAMPLE_RATE_HZ + lookaheadSamples + 2 * hopSamples;
  return {
    hopSamples,
    lookaheadSamples,
    windowSamples,
    wideSamples,
    memorySamples,
    maxPendingSamples,
    mergedWindows,
    minNewSpeakerSeconds,
  };
}

/** Chosen on generated conversations and meetings; seconds, shares and cosines. */
export const LIVE = {
  /** Least length of a window. */
  windowSamples: 4 * SAMPLE_RATE_HZ,
  /** Least length at the beginning of a stream; silence in front makes up for what is missing. */
  minWindowSamples: SAMPLE_RATE_HZ,
  /** Least length of the longer window that is segmented before a local speaker becomes a new one. */
  wideSamples: 6 * SAMPLE_RATE_HZ,

  /** In an average of windows, frames with at least this many after them have full weight. */
  fullWeightFrames: 50,

  /** Least speech alone that an embedding is taken of. */
  minVoiceSeconds: 0.2,
  /** Least share of a block's frames that must be the speaker's. */
  minBlockShare: 0.8,
  /**
   * Left and right context of the frames that a run of the trunk adds. The receptive field of embedder-v5 is some two
   * seconds to either side; the nearest frames count most.
   */
  trunkLeadFrames: 100,
  trunkLagFrames: 20,
  /** Past over which mean and floor of the features are taken. */
  normalisationFrames: 1000,

  /** Interval at which the voices of a window become items of the clustering. */
  itemEverySeconds: 2,
  /** Beyond this number of items, neighbours of one speaker are joined. */
  maxItems: 200,
  /** Times of the first clusterings, and the interval after the last of them. */
  reclusterSeconds: [6, 10, 14, 20, 26, 32, 40, 50, 60],
  reclusterEverySeconds: 10,
  /** As of recordings, but for fewer speakers: one too many is sent at once. */
  initialThreshold: 0.7,
  speakerRegularisation: 2,

  /** Revision by embeddings: speech around a moment, weight (0 none, 1 all) and temperature of the softmax. */
  revisionSeconds: 1.5,
  revisionWeight: 0.75,
  revisionTemperature: 0.1,

  /** Weight of the share of speech that was sent as a label, beside the similarity to it. */
  continuityWeight: 0.25,
  /** A local speaker less similar than this to every label is new. */
  newSpeakerSimilarity: 0.3,
  /** Lowers that threshold for short speech, whose embeddings are unreliable. */
  shortSpeechPenalty: 0.12,
  /** Lowers it for a label that all earlier speech of the same person was sent as, by a longer window. */
  priorShareWeight: 0.15,
  /**
   * Least similarity to the last speaker of an unused label for that label to be given again, or its spans to be kept.
   */
  reuseSimilarity: 0.2,
  /** Longest time that a local speaker without a label is held back, within the latency. */
  maxPendingSeconds: 1.2,

  /** Longest span that is kept for corrections, and how many are. */
  sentSpanSeconds: 5,
  maxSentSpans: 600,
  /** A span of a second or more changes its speaker for one that is more similar by this; a shorter one needs more. */
  correctionMargin: 0.1,

  /** Pauses up to this long become part of a turn, as far as the window shows. */
  minOffSeconds: 0.24,
  /** Shorter speech begins no turn. */
  minOnSeconds: 0.1,

  /** Least confidence of a match with a known voice. */
  matchConfidence: 50,
} as const;
