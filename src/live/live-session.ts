import type { Plda } from '../diarization/clustering/plda.ts';
import type { SpeakerVoice } from '../diarization/diarization.ts';
import type { EmbeddingPort, FilterbankPort, MelPowerPort, SegmentationPort } from '../diarization/model-ports.ts';
import type { IdentificationParameters } from '../voiceprint/identification.ts';

/** A known voice; its label is reported when a speaker matches it. */
export interface KnownVoice {
  readonly label: string;
  readonly voice: SpeakerVoice;
}

/** What a stream was asked for; kept with it, also through hibernation. */
export interface LiveSettings {
  /** Longest time from a moment to its event, processing excepted; 300…5000. */
  readonly latencyMs: number;
  /** 1…8 */
  readonly maxSpeakers: number;
  readonly voices: readonly KnownVoice[];
  /** Whether events with the wrong speaker are corrected later. */
  readonly corrections: boolean;
}

/** A speaker begins or ends a turn. Times are seconds from the start of the stream, in whole milliseconds. */
export interface TurnEvent {
  readonly kind: 'start' | 'end';
  /** 0…maxSpeakers − 1, numbered by first appearance; stable within the stream. */
  readonly speaker: number;
  readonly timestampSeconds: number;
  /** On starts, where voices were given: label of the matching voice, null for none or none yet. */
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

/** Only on request: changes of earlier events, which apply all at once. Starts and ends are the same without. */
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
 * Diarization of a stream: samples in, events out. Every end has one earlier start of the same speaker, times never go
 * back within a speaker, and nothing is open after `finish`. Calls must not overlap.
 */
export interface LiveSession {
  /**
   * Takes the next samples, mono at 16 kHz in −1…1, any number, and returns the events that are due.
   * @param samples finite; the caller replaces what is not
   */
  push(samples: Float32Array): Promise<LiveEvent[]>;
  /** The stream has ended: returns the remaining events and closes open turns. */
  finish(): Promise<LiveEvent[]>;
  /** All that is needed to go on in another isolate: `restore` continues with the same events, to the bit. */
  snapshot(): Uint8Array;
}
