import { joined } from './spans.ts';
import type { Span, SpeakerTurns } from './types.ts';

/** A piece of a recording that an engine hears at once. */
export interface Piece {
  /** What the engine hears. */
  readonly audio: Span;
  /** Words whose middle lies here belong to this piece: where pieces overlap, one of them has a word. */
  readonly owned: Span;
}

/** A pause of so much always ends a piece: nothing is sent of long silences, into which engines imagine words. */
const LONG_PAUSE_SECONDS = 5;
/** Heard on both sides of a piece where nobody speaks: the edges of turns may cut a sound off. */
const PAUSE_MARGIN_SECONDS = 0.5;
/** The same where a piece is cut in the middle of speech. */
const SPEECH_MARGIN_SECONDS = 1.5;
/** Pauses are looked for from this share of the longest piece on. */
const EARLIEST_CUT_SHARE = 0.5;

/**
 * Cuts a recording into pieces for an engine: at the longest pause of the second half of each, where there is none at a
 * change of speakers, else at the longest length. Without speech there are no pieces.
 *
 * @param maxSeconds of what the engine hears at once
 * @returns in order; the parts that they own do not overlap
 */
export function piecesOf({ durationSeconds, turns, exclusiveTurns }: SpeakerTurns, maxSeconds: number): Piece[] {
  const longest = maxSeconds - 2 * SPEECH_MARGIN_SECONDS;
  const changes = exclusiveTurns.map(({ startSeconds }) => startSeconds);
  const owned: { span: Span; isCutBefore: boolean; isCutAfter: boolean }[] = [];
  for (const stretch of stretchesOf(joined(turns))) {
    let rest = stretch;
    let isCutBefore = false;
    for (let cut = cutOf(rest, longest, changes); cut; cut = cutOf(rest, longest, changes)) {
      owned.push({ span: cut.before, isCutBefore, isCutAfter: cut.isInSpeech });
      isCutBefore = cut.isInSpeech;
      rest = cut.after;
    }
    owned.push({
      span: { startSeconds: rest[0].startSeconds, endSeconds: endOf(rest) },
      isCutBefore,
      isCutAfter: false,
    });
  }
  return owned.map(({ span, isCutBefore, isCutAfter }, index) => {
    const before = owned[index - 1]?.span.endSeconds ?? Number.NEGATIVE_INFINITY;
    const after = owned[index + 1]?.span.startSeconds ?? Number.POSITIVE_INFINITY;
    const startMargin = isCutBefore ? SPEECH_MARGIN_SECONDS : pauseMargin(span.startSeconds - before);
    const endMargin = isCutAfter ? SPEECH_MARGIN_SECONDS : pauseMargin(after - span.endSeconds);
    return {
      audio: {
        startSeconds: Math.max(0, span.startSeconds - startMargin),
        endSeconds: Math.min(durationSeconds, span.endSeconds + endMargin),
      },
      owned: {
        startSeconds: isCutBefore ? span.startSeconds : Math.max(0, span.startSeconds - startMargin),
        endSeconds: isCutAfter ? span.endSeconds : Math.min(durationSeconds, span.endSeconds + endMargin),
      },
    };
  });
}

const pauseMargin = (pauseSeconds: number): number => Math.min(PAUSE_MARGIN_SECONDS, pauseSeconds / 2);

const endOf = (spans: readonly Span[]): number => spans[spans.length - 1].endSeconds;

/** Speech between two long pauses. */
function stretchesOf(speech: readonly Span[]): Span[][] {
  const stretches: Span[][] = [];
  for (const span of speech) {
    const last = stretches.at(-1);
    if (last && span.startSeconds - endOf(last) < LONG_PAUSE_SECONDS) last.push(span);
    else stretches.push([span]);
  }
  return stretches;
}

interface Cut {
  readonly before: Span;
  readonly after: Span[];
  readonly isInSpeech: boolean;
}

/** @returns undefined where the stretch is short enough as it is */
function cutOf(stretch: Span[], longest: number, changes: readonly number[]): Cut | undefined {
  const from = stretch[0].startSeconds;
  if (endOf(stretch) - from <= longest) return undefined;
  const earliest = from + EARLIEST_CUT_SHARE * longest;
  let best = 0;
  let longestPause = 0;
  for (let at = 1; at < stretch.length && stretch[at - 1].endSeconds - from <= longest; at++) {
    const pause = stretch[at].startSeconds - stretch[at - 1].endSeconds;
    if (stretch[at - 1].endSeconds >= earliest && pause > longestPause) [best, longestPause] = [at, pause];
  }
  if (best > 0) {
    const before = { startSeconds: from, endSeconds: stretch[best - 1].endSeconds };
    return { before, after: stretch.slice(best), isInSpeech: false };
  }
  const change = changes.findLast((seconds) => seconds >= earliest && seconds <= from + longest);
  const at = change ?? from + longest;
  const after = stretch
    .filter(({ endSeconds }) => endSeconds > at)
    .map(({ startSeconds, endSeconds }) => ({ startSeconds: Math.max(at, startSeconds), endSeconds }));
  return { before: { startSeconds: from, endSeconds: at }, after, isInSpeech: true };
}
