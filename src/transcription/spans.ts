/** A span of time, in seconds. */
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

/** Spans sorted by start; spans that touch or overlap are joined. */
export function joined(spans: readonly Span[]): Span[] {
  const joinedSpans: { startSeconds: number; endSeconds: number }[] = [];
  for (const { startSeconds, endSeconds } of [...spans].sort((a, b) => a.startSeconds - b.startSeconds)) {
    const last = joinedSpans.at(-1);
    if (last && startSeconds <= last.endSeconds) last.endSeconds = Math.max(last.endSeconds, endSeconds);
    else joinedSpans.push({ startSeconds, endSeconds });
  }
  return joinedSpans;
}

/** Duration of the overlap of two spans, in seconds. */
export function overlapSeconds(a: Span, b: Span): number {
  return Math.max(0, Math.min(a.endSeconds, b.endSeconds) - Math.max(a.startSeconds, b.startSeconds));
}

/** Gap between two spans in seconds, 0 if they touch or overlap. */
export function distanceSeconds(a: Span, b: Span): number {
  return Math.max(0, a.startSeconds - b.endSeconds, b.startSeconds - a.endSeconds);
}

/**
 * Finds the spans near a query span. Queries must come roughly in order of time: the position of the last query is
 * kept, so that all queries together take one pass over the spans.
 *
 * @param T spans sorted by start
 */
export class SpanWalk<T extends Span> {
  #first = 0;
  readonly #longestSeconds: number;

  constructor(private readonly spans: readonly T[]) {
    this.#longestSeconds = spans.reduce(
      (longest, { startSeconds, endSeconds }) => Math.max(longest, endSeconds - startSeconds),
      0,
    );
  }

  /** Spans within `marginSeconds` of the given one, sorted by start. */
  near(span: Span, marginSeconds = 0): T[] {
    const { spans } = this;
    const from = span.startSeconds - marginSeconds;
    while (this.#first > 0 && spans[this.#first - 1].startSeconds + this.#longestSeconds >= from) this.#first--;
    while (this.#first < spans.length && spans[this.#first].startSeconds + this.#longestSeconds < from) this.#first++;
    const found: T[] = [];
    for (let at = this.#first; at < spans.length && spans[at].startSeconds <= span.endSeconds + marginSeconds; at++) {
      if (spans[at].endSeconds >= from) found.push(spans[at]);
    }
    return found;
  }
}
