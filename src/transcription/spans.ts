import type { Span } from './types.ts';

/** Spans in order of their start, those that touch or overlap joined. */
export function joined(spans: readonly Span[]): Span[] {
  const joinedSpans: { startSeconds: number; endSeconds: number }[] = [];
  for (const { startSeconds, endSeconds } of [...spans].sort((a, b) => a.startSeconds - b.startSeconds)) {
    const last = joinedSpans.at(-1);
    if (last && startSeconds <= last.endSeconds) last.endSeconds = Math.max(last.endSeconds, endSeconds);
    else joinedSpans.push({ startSeconds, endSeconds });
  }
  return joinedSpans;
}

/** Seconds that two spans share. */
export function overlapSeconds(a: Span, b: Span): number {
  return Math.max(0, Math.min(a.endSeconds, b.endSeconds) - Math.max(a.startSeconds, b.startSeconds));
}

/** Seconds between two spans, 0 where they touch. */
export function distanceSeconds(a: Span, b: Span): number {
  return Math.max(0, a.startSeconds - b.endSeconds, b.startSeconds - a.endSeconds);
}

/**
 * Finds spans that lie around a time, where the times that are asked for never fall much: one walk over all of them
 * instead of a search for each.
 *
 * @param T in order of their start
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

  /** Spans that come within `marginSeconds` of the one given, in their order. */
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
