/** Frame-wise results, one byte a frame of `resolutionSeconds`, 255 for certainty (confidence: 0…100). */
export interface FrameTracks {
  readonly resolutionSeconds: number;
  /** Calibrated probability, 0…100, that the frame's set of speakers is right. */
  readonly confidence: Uint8Array;
  /** Probability that anybody speaks. */
  readonly speech: Uint8Array;
  /** Probability that two or more speak. */
  readonly crosstalk: Uint8Array;
  /** [speakers] probability that each speaks; empty when it was not asked for. */
  readonly speakers: readonly SpeakerTrack[];
}

/** The track of one speaker: at hand, or, of a long recording, read from where it was put down. */
export type SpeakerTrack = Uint8Array | { blocks(): AsyncGenerator<Uint8Array> };

export interface SpeakerTurn {
  /** Index of the speaker: its label's number. */
  readonly speaker: number;
  readonly startSeconds: number;
  readonly endSeconds: number;
  /** From 0; only if the channels of the recording were diarized separately. */
  readonly channel?: number;
}

export interface ScoredTurn extends SpeakerTurn {
  /** [speakers] 0…100, how sure it is that each one speaks in this turn. */
  readonly confidence: readonly number[];
}

/** Who spoke when. Times are seconds from the start of the recording, to the millisecond. */
export interface Diarization {
  readonly durationSeconds: number;
  /** Speakers are 0…speakers−1, numbered by first appearance. */
  readonly speakers: number;
  /** By start, then speaker. */
  readonly turns: readonly ScoredTurn[];
  /** The same with one speaker at a time. */
  readonly exclusiveTurns: readonly SpeakerTurn[];
  readonly tracks: FrameTracks;
  /** [speakers] how each sounds, where it was asked for. */
  readonly voices?: readonly SpeakerVoice[];
  readonly warning?: string;
}

/** How a speaker of a recording sounds. */
export interface SpeakerVoice {
  /** Id of the embedder: voices of different ones cannot be compared. */
  readonly embeddingId: string;
  /** [dimension] unit length; empty where no speech of the speaker alone could be embedded */
  readonly embedding: Float32Array;
  /** Speech in which nobody else talks. */
  readonly secondsAlone: number;
}

/** `SPEAKER_00`, `SPEAKER_01`, … */
export function speakerLabel(speaker: number): string {
  return `SPEAKER_${String(speaker).padStart(2, '0')}`;
}
