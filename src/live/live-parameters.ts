import { SAMPLE_RATE_HZ } from '../audio/audio-ports.ts';
import type { LiveSettings } from './live-session.ts';

/** Timing of a stream. Lengths in samples at 16 kHz. */
export interface LiveTiming {
  /** Time between two windows. */
  readonly hopSamples: number;
  /** Audio after a moment that a decision about it waits for. */
  readonly lookaheadSamples: number;
  /** Length of a live window. */
  readonly windowSamples: number;
  /** Length of the longer window that is segmented if a local speaker seems new. */
  readonly wideSamples: number;
  /** How long the embedder's frames are kept: for the longest span that may be corrected. */
  readonly memorySamples: number;
  /** Longest time that a local speaker without a label is held back. */
  readonly maxPendingSamples: number;
  /** Number of earlier windows that are averaged with a window. */
  readonly mergedWindows: number;
  /** Speech that a new speaker needs. */
  readonly minNewSpeakerSeconds: number;
}

/**
 * Short latencies: more windows, and less speech for a new speaker. `marginSamples` is the part of the latency that is
 * left for computing and for speakers who are recognised late.
 */
const TIMINGS = [
  { belowMs: 750, hopSamples: 4000, marginSamples: 0, mergedWindows: 5, minNewSpeakerSeconds: 0.4 },
  { belowMs: 1750, hopSamples: 6400, marginSamples: 1600, mergedWindows: 3, minNewSpeakerSeconds: 0.7 },
  {
    belowMs: Number.POSITIVE_INFINITY,
    hopSamples: 9600,
    marginSamples: 0,
    mergedWindows: 3,
    minNewSpeakerSeconds: 0.7,
  },
] as const;
/** Below this latency no local speaker is held back. */
const PENDING_FROM_SECONDS = 0.5;
const LOOKAHEAD_GRID_SAMPLES = 1600;
/** Length of a frame of audio that a client sends. */
const FRAME_SAMPLES = 1600;
/** Minimum length of a window without the look-ahead. */
const MIN_PAST_SAMPLES = 2.5 * SAMPLE_RATE_HZ;

/**
 * The latency is the longest time from a moment to its event for a known speaker, without computing: look-ahead, hop,
 * and the wait for the end of a frame of audio. On average it is half a hop less.
 */
export function timingOf({ latencyMs }: Pick<LiveSettings, 'latencyMs'>): LiveTiming {
  const timing = TIMINGS.find(({ belowMs }) => latencyMs < belowMs)!;
  const { hopSamples, marginSamples, mergedWindows, minNewSpeakerSeconds } = timing;
  // Hops are whole or half frames of 100 ms; a window waits for the end of the frame in which it ends.
  const frameWaitSamples = hopSamples % FRAME_SAMPLES;
  const wanted = (latencyMs / 1000) * SAMPLE_RATE_HZ - hopSamples - frameWaitSamples - marginSamples;
  const lookaheadSamples = Math.max(0, Math.floor(wanted / LOOKAHEAD_GRID_SAMPLES)) * LOOKAHEAD_GRID_SAMPLES;
  const windowSamples = Math.max(LIVE.windowSamples, lookaheadSamples + MIN_PAST_SAMPLES);
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

/** Tuned on generated conversations and meetings. */
export const LIVE = {
  /** Minimum length of a window. */
  windowSamples: 4 * SAMPLE_RATE_HZ,
  /** Minimum length at the start of a stream, padded with silence before it. */
  minWindowSamples: SAMPLE_RATE_HZ,
  /** Minimum length of the longer window that is segmented before a local speaker gets a new label. */
  wideSamples: 6 * SAMPLE_RATE_HZ,

  /** In an average of windows, frames with at least this number of frames after them have full weight. */
  fullWeightFrames: 50,

  /** Minimum clean speech for an embedding. */
  minVoiceSeconds: 0.2,
  /** A block is used for a speaker if at least this share of its frames is the speaker's. */
  minBlockShare: 0.8,
  /** Number of past frames for the mean and floor of the features. */
  normalisationFrames: 1000,

  /** Interval at which the voices of a window become items of the clustering. */
  itemEverySeconds: 2,
  /** Above this number of items, neighbours of one speaker are joined. */
  maxItems: 200,
  /** Times of the first clusterings, and the interval after the last of them. */
  reclusterSeconds: [6, 10, 14, 20, 26, 32, 40, 50, 60],
  reclusterEverySeconds: 10,
  /** First cut of the clustering's tree. Higher than for recordings, for fewer speakers: an extra one is sent at once. */
  initialThreshold: 0.7,

  /** Resegmentation: length of the embedded speech, weight (0 none, 1 all) and temperature of the softmax. */
  revisionSeconds: 1.5,
  revisionWeight: 0.75,
  revisionTemperature: 0.1,

  /** Weight of the share of speech that was sent under a label, relative to the similarity. */
  continuityWeight: 0.25,
  /** A local speaker with less similarity to every label is new. */
  newSpeakerSimilarity: 0.3,
  /** Lowers `newSpeakerSimilarity` for short speech, whose embeddings are unreliable. */
  shortSpeechPenalty: 0.12,
  /** Lowers it for a label under which all earlier speech of the same person was sent, see `priorSharesOf`. */
  priorShareWeight: 0.15,
  /** Minimum similarity to the last speaker of an unused label to reuse that label, or to relabel its spans. */
  reuseSimilarity: 0.2,
  /** Longest time that a local speaker without a label is held back; the latency may limit it further. */
  maxPendingSeconds: 1.2,

  /** Maximum length and number of the spans that are kept for corrections. */
  sentSpanSeconds: 5,
  maxSentSpans: 600,
  /** A span moves to a speaker who is more similar by this margin; spans under 1 s need more. */
  correctionMargin: 0.1,

  /** Pauses up to this length become part of a turn, as far as the window reaches. */
  minOffSeconds: 0.24,
  /** Shorter speech starts no turn. */
  minOnSeconds: 0.1,

  /** Minimum confidence of a match with a known voice, percent. */
  matchConfidence: 50,
} as const;
