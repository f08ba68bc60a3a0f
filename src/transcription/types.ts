/** A stretch of time, in seconds. */
export interface Span {
  readonly startSeconds: number;
  readonly endSeconds: number;
}

/** A word of a transcript, with the engine's punctuation and case. */
export interface Word extends Span {
  /** Without white space around it. */
  readonly text: string;
  /** Whether white space precedes the word; Chinese, Japanese and Thai have none between words. */
  readonly isSpaced: boolean;
}

/** A word, or the text of a turn, and its speaker. */
export interface SpokenText extends Span {
  readonly text: string;
  /** Index of the speaker. */
  readonly speaker: number;
}

/** A text with its times, relative to the audio that the engine was given. */
export interface TimedText extends Span {
  readonly text: string;
}

/** An engine's transcript of a piece of audio. */
export interface EngineAnswer {
  readonly text: string;
  /** Empty if the engine returns none. */
  readonly segments: readonly TimedText[];
  /** Empty if the engine returns none. Some engines omit punctuation here and have it in `text` only. */
  readonly words: readonly TimedText[];
}

/** The turns of a diarization, as needed for a transcript. */
export interface SpeakerTurns {
  readonly durationSeconds: number;
  /** Sorted by start. They overlap where several people speak. */
  readonly turns: readonly SpeakerSpan[];
  /** The exclusive turns: one speaker at a time. */
  readonly exclusiveTurns: readonly SpeakerSpan[];
}

export interface SpeakerSpan extends Span {
  /** Index of the speaker. */
  readonly speaker: number;
}
