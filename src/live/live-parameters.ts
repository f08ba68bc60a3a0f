import { SAMPLE_RATE_HZ } from '../audio/audio-ports.ts';
import type { LiveSettings } from './live-session.ts';

/** How a stream is cut up in time. All in samples at 16 kHz. */
export interface LiveTiming {
  /** Distance of two looks at the stream. */
  readonly hopSamples: number;
  /** What is heard after a moment before something is said about it. */
  readonly lookaheadSamples: number;
  /** Audio that the segmentation sees at a look. */
  readonly windowSamples: number;
  /** Audio that it sees once more where somebody seems new. */
  readonly wideSamples: number;
  /** How long the embedder's frames are remembered: until a piece is told and may be corrected. */
  readonly memorySamples: number;
  /** How much longer somebody may be held back who is not known yet. */
  readonly maxPendingSamples: number;
  /** Looks before a look that are taken together with it. */
  readonly pastLooks: number;
  /** Somebody who is like nobody is new once so much speech was heard. */
  readonly minNewSpeakerSeconds: number;
}

/** Who wants to know soon is told after more looks, and on less speech that somebody is new. */
const TIMINGS = [
  { belowMs: 750, hopSamples: 4000, pastLooks: 5, minNewSpeakerSeconds: 0.4 },
  { belowMs: 1750, hopSamples: 6400, pastLooks: 3, minNewSpeakerSeconds: 0.7 },
  { belowMs: Number.POSITIVE_INFINITY, hopSamples: 9600, pastLooks: 3, minNewSpeakerSeconds: 0.7 },
] as const;
/** At so low a latency nobody is held back any more. */
const PENDING_FROM_SECONDS = 0.5;
const LOOKAHEAD_GRID_SAMPLES = 1600;
/** Audio comes in frames of so many samples. */
const FRAME_SAMPLES = 1600;
/** Of a look, so much at least lies before what is told of it. */
const LEAST_PAST_SAMPLES = 2.5 * SAMPLE_RATE_HZ;

/**
 * The latency is the longest time from a moment to what is said about it, computing excepted, for somebody who is
 * known: look-ahead plus hop, and what a look has to wait for the end of a frame of audio. On average it is half a hop
 * less.
 */
export function timingOf({ latencyMs }: Pick<LiveSettings, 'latencyMs'>): LiveTiming {
  const { hopSamples, pastLooks, minNewSpeakerSeconds } = TIMINGS.find(({ belowMs }) => latencyMs < belowMs)!;
  // Hops are whole or half frames of 100 ms; a look waits for the end of the frame in which it falls.
  const frameWaitSamples = hopSamples % FRAME_SAMPLES;
  const wanted = (latencyMs / 1000) * SAMPLE_RATE_HZ - hopSamples - frameWaitSamples;
  const lookaheadSamples = Math.max(0, Math.floor(wanted / LOOKAHEAD_GRID_SAMPLES)) * LOOKAHEAD_GRID_SAMPLES;
  const windowSamples = Math.max(LIVE.windowSamples, lookaheadSamples + LEAST_PAST_SAMPLES);
  const wideSamples = Math.max(LIVE.wideSamples, windowSamples);
  const pendingSeconds = Math.max(0, latencyMs / 1000 - PENDING_FROM_SECONDS);
  const maxPendingSamples = Math.min(LIVE.maxPendingSeconds, pendingSeconds) * SAMPLE_RATE_HZ;
  const memorySamples = LIVE.pieceSeconds * SAMPLE_RATE_HZ + lookaheadSamples + 2 * hopSamples;
  return {
    hopSamples,
    lookaheadSamples,
    windowSamples,
    wideSamples,
    memorySamples,
    maxPendingSamples,
    pastLooks,
    minNewSpeakerSeconds,
  };
}

/** Chosen on generated conversations and meetings; seconds, shares and cosines. */
export const LIVE = {
  /** Audio that the segmentation sees at a look, at least. */
  windowSamples: 4 * SAMPLE_RATE_HZ,
  /** At the beginning of a stream it sees what there is, with silence before to make up for this much. */
  leastWindowSamples: SAMPLE_RATE_HZ,
  /** Before somebody is new it looks back so far, at least. */
  wideSamples: 6 * SAMPLE_RATE_HZ,

  /** Of looks that are taken together, frames count fully that have at least so many others after them. */
  fullWeightFrames: 50,

  /** A speaker's embedding is taken of so much speech alone, at least; all of it in the window, at most. */
  minVoiceSeconds: 0.2,
  /** Of the frames of a block, so many have to be the speaker's. */
  minBlockShare: 0.8,
  /** Context of the embedder before and after the stretch whose frames are kept: embedder-v5 has a receptive field of some
   * two seconds to either side, of which the nearest frames count most. */
  trunkLeadFrames: 100,
  trunkLagFrames: 20,
  /** The features' mean and floor are taken over so much of the past. */
  normalisationFrames: 1000,

  /** So often the speakers' voices in the window are kept for finding the speakers anew… */
  itemEverySeconds: 2,
  /** …so many of them; beyond, neighbours of one speaker are joined. */
  maxItems: 200,
  /** Speakers are found anew after each of these times, then as often as the last of them. */
  reclusterSeconds: [6, 10, 14, 20, 26, 32, 40, 50, 60],
  reclusterEverySeconds: 10,
  /**
   * Distance up to which the looks' voices are joined for the clusters to start from, and what a further speaker costs:
   * fewer than for recordings, since whoever is found too many is told at once.
   */
  initialThreshold: 0.7,
  speakerRegularisation: 2,

  /**
   * Speech around a moment by which the look's speakers are revised, how much it has to say (0 nothing, 1 everything),
   * and how sharply.
   */
  revisionSeconds: 1.5,
  revisionWeight: 0.75,
  revisionTemperature: 0.1,

  /** How much having been somebody a moment ago counts beside sounding like them. */
  continuityWeight: 0.25,
  /** Somebody who is less like everybody known is new… */
  newSpeakerSimilarity: 0.3,
  /** …by up to so much less while little of the voice was heard: what is short is like nobody… */
  shortVoiceDoubt: 0.12,
  /** …by so much less than who a look further back takes for the same person, all of whose speech in it was theirs… */
  linkWeight: 0.15,
  /**
   * …or was here before: a label out of use is given again to who is at least so much like its last speaker, and what
   * was told as its goes only to who is.
   */
  againSimilarity: 0.2,
  /**
   * Somebody who is not known yet is held back for so long at most, and for no longer than the latency beyond half a
   * second.
   */
  maxPendingSeconds: 1.2,

  /** What was told is kept for corrections in pieces of at most so long, the last ones of them… */
  pieceSeconds: 5,
  maxPieces: 600,
  /** …each of which changes its speaker when it is so much more like another; the less of it there is, the more. */
  correctionMargin: 0.1,

  /** Pauses up to this long become part of a turn where they can be seen. */
  minOffSeconds: 0.24,
  /** Shorter speech begins no turn. */
  minOnSeconds: 0.1,

  /** Confidence from which on a known voice is named. */
  matchConfidence: 50,
} as const;
