import { joined, type Span, type SpeakerTurns } from './spans.ts';

/** A piece of a recording that is sent to an engine in one request. */
export interface Piece {
  /** The audio that is sent. */
  readonly audio: Span;
  /**
   * Words whose middle lies in this span are taken from this piece. The audio of pieces may overlap, these spans do
   * not.
   */
  readonly owned: Span;
}

/** A pause of this length always ends a piece. Long silence is not sent, because engines hallucinate words in it. */
const LONG_PAUSE_SECONDS = 5;
/** Audio sent before and after a piece at a pause: the edges of turns may cut off a sound. */
const PAUSE_MARGIN_SECONDS = 0.5;
/** Audio sent before and after a cut inside speech. */
const SPEECH_MARGIN_SECONDS = 1.5;
/** A piece is cut after this share of its maximum length at the earliest. */
const EARLIEST_CUT_SHARE = 0.5;

/**
 * Cuts a recording into pieces for an engine: at the longest pause in the second half of a piece, else at a change of
 * speakers, else at the maximum length. Without speech there are no pieces.
 *
 * @param maxSeconds maximum length of the audio of a piece
 * @returns pieces in order of time
 */
export function piecesOf({ durationSeconds, turns, exclusiveTurns }: SpeakerTurns, maxSeconds: number): Piece[] {
  const longest = maxSeconds - 2 * SPEECH_MARGIN_SECONDS;
  const changes = exclusiveTurns.map(({ startSeconds }) => startSeconds);
  const owned: { span: Span; isCutBefore: boolean; isCutAfter: boolean }[] = [];
  for (const group of groupsOf(joined(turns))) {
    let rest = group;
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

/** Groups of speech spans, separated by long pauses. */
function groupsOf(speech: readonly Span[]): Span[][] {
  const groups: Span[][] = [];
  for (const span of speech) {
    const last = groups.at(-1);
    if (last && span.startSeconds - endOf(last) < LONG_PAUSE_SECONDS) last.push(span);
    else groups.push([span]);
  }
  return groups;
}

interface Cut {
  readonly before: Span;
  readonly after: Span[];
  readonly isInSpeech: boolean;
}

/** @returns undefined if the group is short enough */
function cutOf(group: Span[], longest: number, changes: readonly number[]): Cut | undefined {
  const from = group[0].startSeconds;
  if (endOf(group) - from <= longest) return undefined;
  const earliest = from + EARLIEST_CUT_SHARE * longest;
  let best = 0;
  let longestPause = 0;
  for (let at = 1; at < group.length && group[at - 1].endSeconds - from <= longest; at++) {
    const pause = group[at].startSeconds - group[at - 1].endSeconds;
    if (group[at - 1].endSeconds >= earliest && pause > longestPause) [best, longestPause] = [at, pause];
  }
  if (best > 0) {
    const before = { startSeconds: from, endSeconds: group[best - 1].endSeconds };
    return { before, after: group.slice(best), isInSpeech: false };
  }
  const change = changes.findLast((seconds) => seconds >= earliest && seconds <= from + longest);
  const at = change ?? from + longest;
  const after = group
    .filter(({ endSeconds }) => endSeconds > at)
    .map(({ startSeconds, endSeconds }) => ({ startSeconds: Math.max(at, startSeconds), endSeconds }));
  return { before: { startSeconds: from, endSeconds: at }, after, isInSpeech: true };
}
