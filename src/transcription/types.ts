/** A stretch of time, in seconds. */
export interface Span {
  readonly startSeconds: number;
  readonly endSeconds: number;
}

/** A word of a transcript, punctuation and case as the engine wrote them. */
export interface Word extends Span {
  /** Without white space around it. */
  readonly text: string;
  /** Whether white space comes before it: Chinese, Japanese and Thai have none between words. */
  readonly isSpaced: boolean;
}

/** A word, or the words of a turn, and who said them. */
export interface SpokenText extends Span {
  readonly text: string;
  /** Index of the speaker. */
  readonly speaker: number;
}

/** A text with its times in the audio that an engine was given. */
export interface TimedText extends Span {
  readonly text: string;
}

/** What an engine made of a piece of audio. */
export interface EngineAnswer {
  readonly text: string;
  /** Empty where the engine tells none. */
  readonly segments: readonly TimedText[];
  /** Empty where the engine tells none. Some leave the punctuation out, which `text` has. */
  readonly words: readonly TimedText[];
}

/** Who speaks when, as far as a transcript needs it. */
export interface SpeakerTurns {
  readonly durationSeconds: number;
  /** By start. They overlap where people speak at once. */
  readonly turns: readonly SpeakerSpan[];
  /** The same with one speaker at a time. */
  readonly exclusiveTurns: readonly SpeakerSpan[];
}

export interface SpeakerSpan extends Span {
  /** Index of the speaker. */
  readonly speaker: number;
}
