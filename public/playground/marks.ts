import type { Turn } from './turns.ts';

/** Turns with a lower confidence (0 to 100) are marked as unsure. */
export const UNSURE_BELOW = 60;

/** A span of time with the same active speakers. Ranges do not overlap; spans without speech have no range. */
export interface Range {
  readonly start: number;
  readonly end: number;
  readonly speakers: readonly string[];
}

export type ConfidentTurn = Turn & { readonly confidence?: Readonly<Record<string, number>> };

/** Returns the confidence in a turn's speaker, 0 to 100; undefined if the result has none. */
export function confidenceOf({ speaker, confidence }: ConfidentTurn): number | undefined {
  return confidence?.[speaker];
}

export function isUnsure(turn: ConfidentTurn): boolean {
  return (confidenceOf(turn) ?? 100) < UNSURE_BELOW;
}

/**
 * Adds to each transcribed turn the confidence of the turn of the same speaker with the longest overlap.
 * @param turns by start
 */
export function withConfidence<T extends Turn>(
  transcribed: readonly T[],
  turns: readonly ConfidentTurn[],
): (T & ConfidentTurn)[] {
  return transcribed.map((turn) => {
    let [confidence, longest]: [ConfidentTurn['confidence'], number] = [undefined, 0];
    for (const other of turns) {
      if (other.start >= turn.end) break;
      const shared = Math.min(other.end, turn.end) - Math.max(other.start, turn.start);
      if (other.speaker === turn.speaker && shared > longest) [confidence, longest] = [other.confidence, shared];
    }
    return confidence ? { ...turn, confidence } : turn;
  });
}

/** Divides time into ranges by the active speakers. @param turns by start */
export function rangesOf(turns: readonly Turn[]): Range[] {
  const events = turns.flatMap((turn) => [
    { at: turn.start, turn, isStart: true },
    { at: turn.end, turn, isStart: false },
  ]);
  events.sort((a, b) => a.at - b.at || Number(a.isStart) - Number(b.isStart));
  const talking = new Set<Turn>();
  const ranges: Range[] = [];
  let since = 0;
  for (const { at, turn, isStart } of events) {
    if (talking.size > 0 && at > since) {
      ranges.push({ start: since, end: at, speakers: [...new Set([...talking].map(({ speaker }) => speaker))] });
    }
    since = at;
    if (isStart) talking.add(turn);
    else talking.delete(turn);
  }
  return ranges;
}

/** Returns the index of the last item that starts at or before a time; -1 for none. @param items by start */
export function lastStarted(items: readonly { readonly start: number }[], seconds: number): number {
  let [low, high] = [0, items.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (items[middle].start <= seconds) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** Returns the seconds of a turn in which other speakers also talk. */
export function overlapSeconds(turn: Turn, ranges: readonly Range[]): number {
  let seconds = 0;
  for (let i = Math.max(0, lastStarted(ranges, turn.start)); i < ranges.length && ranges[i].start < turn.end; i++) {
    const { start, end, speakers } = ranges[i];
    const shared = Math.min(end, turn.end) - Math.max(start, turn.start);
    if (speakers.length > 1 && speakers.includes(turn.speaker) && shared > 0) seconds += shared;
  }
  return seconds;
}

/** Returns the ranges in which a speaker talks alone, the longest first. */
export function aloneRanges(ranges: readonly Range[], speaker: string): Range[] {
  return ranges
    .filter(({ speakers }) => speakers.length === 1 && speakers[0] === speaker)
    .sort((a, b) => b.end - b.start - (a.end - a.start));
}
