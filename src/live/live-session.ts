import type { Plda } from '../diarization/clustering/plda.ts';
import type { SpeakerVoice } from '../diarization/diarization.ts';
import type { EmbeddingPort, FilterbankPort, MelPowerPort, SegmentationPort } from '../diarization/model-ports.ts';
import type { IdentificationParameters } from '../voiceprint/identification.ts';

/** A known voice; its label is reported when a speaker matches it. */
export interface KnownVoice {
  readonly label: string;
  readonly voice: SpeakerVoice;
}

/** Settings of a stream; stored with it during hibernation. */
export interface LiveSettings {
  /** Longest time from a moment to its event, without computing; 300…5000. */
  readonly latencyMs: number;
  /** 1…8 */
  readonly maxSpeakers: number;
  readonly voices: readonly KnownVoice[];
  /** Whether the session sends corrections of earlier events. */
  readonly corrections: boolean;
}

/** A speaker starts or ends a turn. Times are seconds from the start of the stream, in whole milliseconds. */
export interface TurnEvent {
  readonly kind: 'start' | 'end';
  /** 0…maxSpeakers − 1, numbered by first appearance; stable within the stream. */
  readonly speaker: number;
  readonly timestampSeconds: number;
  /** On starts, if voices were given: label of the matching voice, null if there is none yet. */
  readonly match?: string | null;
}

/** Relabel `from` as `to` in [startSeconds, endSeconds). */
export interface SpeakerChange {
  readonly startSeconds: number;
  readonly endSeconds: number;
  /** Speaker as sent, earlier corrections included. */
  readonly from: number;
  readonly to: number;
}

/** Only on request: changes of earlier events, to be applied together. Starts and ends do not depend on them. */
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
 * Diarization of a stream: samples in, events out. Every end has one earlier start of the same speaker, the times of a
 * speaker never decrease, and no turn is open after `finish`. Calls must not overlap.
 */
export interface LiveSession {
  /**
   * Takes any number of samples, mono at 16 kHz in −1…1, and returns the events that are due.
   * @param samples finite; the caller replaces other values
   */
  push(samples: Float32Array): Promise<LiveEvent[]>;
  /** Ends the stream: closes open turns and returns the remaining events. */
  finish(): Promise<LiveEvent[]>;
  /** State from which another isolate continues with bit-identical events, see `restoreLiveSession`. */
  snapshot(): Uint8Array;
}
