import type { Plda } from '../diarization/clustering/plda.ts';
import type { SpeakerVoice } from '../diarization/diarization.ts';
import type { EmbeddingPort, FilterbankPort, MelPowerPort, SegmentationPort } from '../diarization/model-ports.ts';
import type { IdentificationParameters } from '../voiceprint/identification.ts';

/** A known voice whose label is reported when it is heard. */
export interface KnownVoice {
  readonly label: string;
  readonly voice: SpeakerVoice;
}

/** What a stream was asked for; kept with it, also through hibernation. */
export interface LiveSettings {
  /** Time between a moment and what is said about it, processing excepted; 300…5000. */
  readonly latencyMs: number;
  /** 1…8 */
  readonly maxSpeakers: number;
  readonly voices: readonly KnownVoice[];
  /** Whether what was told is corrected when it turns out to be somebody else's. */
  readonly corrections: boolean;
}

/** A speaker begins or ends a turn. Times are seconds from the start of the stream, in whole milliseconds. */
export interface TurnEvent {
  readonly kind: 'start' | 'end';
  /** 0…maxSpeakers − 1, numbered by first appearance; stable within the stream. */
  readonly speaker: number;
  readonly timestampSeconds: number;
  /** On starts, where voices were given: whose voice it is, null for nobody's or not known yet. */
  readonly match?: string | null;
}

/** What was told as one speaker's in a stretch is another's. */
export interface SpeakerChange {
  readonly startSeconds: number;
  readonly endSeconds: number;
  /** Who was told to talk, earlier corrections counted. */
  readonly from: number;
  readonly to: number;
}

/** Only where it was asked for: changes of what was told, which apply all at once. Starts and ends are the same without. */
export interface CorrectionEvent {
  readonly kind: 'correction';
  readonly changes: readonly SpeakerChange[];
}

export type LiveEvent = TurnEvent | CorrectionEvent;

/** Models and signal processing, shared by all streams of an isolate. */
export interface LiveEngine {
  readonly segmentation: SegmentationPort;
  readonly embedding: EmbeddingPort;
  readonly filterbank: FilterbankPort;
  readonly melPower: MelPowerPort;
  readonly plda: Plda | undefined;
  readonly identification: IdentificationParameters;
}

/**
 * Diarization of a stream: samples in, events out. Every end has one earlier start of the same speaker, times never go back within
 * a speaker, and nothing is open after `finish`. Calls must not overlap.
 */
export interface LiveSession {
  /**
   * Takes the next samples, mono at 16 kHz in −1…1, any number, and tells what is known by now.
   * @param samples finite; the caller replaces what is not
   */
  push(samples: Float32Array): Promise<LiveEvent[]>;
  /** The stream has ended: tells the rest and closes open turns. */
  finish(): Promise<LiveEvent[]>;
  /** All that is needed to go on in another isolate: `restore` continues with the same events, to the bit. */
  snapshot(): Uint8Array;
}
