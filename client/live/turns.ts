/** A turn of a stream. */
export interface LiveTurn<Speaker> {
  readonly speaker: Speaker;
  readonly start: number;
  readonly end: number;
}

/** Relabels `from` as `to` in a span, after all earlier corrections. */
export interface SpeakerChange<Speaker> {
  readonly startSeconds: number;
  readonly endSeconds: number;
  readonly from: Speaker;
  readonly to: Speaker;
}

interface StreamEvent<Speaker> {
  readonly kind: string;
  readonly speaker?: Speaker;
  readonly timestampSeconds?: number;
  readonly changes?: readonly SpeakerChange<Speaker>[];
}

/** Collects the turns of a running stream; applies each event once. */
export class TurnCollector<Speaker extends string | number> {
  /** Starts of the open turns, seconds. */
  readonly #open = new Map<Speaker, number>();
  /** The other turns, after corrections. */
  #closed: LiveTurn<Speaker>[] = [];

  /** Applies the next event. Events of other kinds change nothing. */
  add({ kind, speaker, timestampSeconds, changes }: StreamEvent<Speaker>): void {
    if (kind === 'correction' && changes) {
      cutOpenTurns(this.#closed, this.#open, changes);
      this.#closed = this.#closed.flatMap((turn) => corrected(turn, changes));
    }
    if (speaker === undefined || timestampSeconds === undefined) return;
    if (kind === 'start') this.#open.set(speaker, timestampSeconds);
    else if (kind === 'end') {
      const start = this.#open.get(speaker);
      this.#open.delete(speaker);
      if (start !== undefined && timestampSeconds > start) this.#closed.push({ speaker, start, end: timestampSeconds });
    }
  }

  /**
   * The turns so far, by start, then by speaker. Closed turns without a correction are the same objects in every call.
   *
   * @param untilSeconds end of the open turns; open turns are left out without it
   */
  turns(untilSeconds?: number): LiveTurn<Speaker>[] {
    const turns = [...this.#closed];
    for (const [speaker, start] of this.#open) {
      if (untilSeconds !== undefined && untilSeconds > start) turns.push({ speaker, start, end: untilSeconds });
    }
    turns.sort((a, b) => a.start - b.start || (a.speaker < b.speaker ? -1 : 1));
    return joined(turns);
  }
}

/**
 * The turns of start, end and correction events, by start, then by speaker.
 *
 * @param untilSeconds end of the turns that are open, as after a lost connection; open turns are left out without it
 */
export function collectTurns<Speaker extends string | number>(
  events: Iterable<StreamEvent<Speaker>>,
  untilSeconds?: number,
): LiveTurn<Speaker>[] {
  const collector = new TurnCollector<Speaker>();
  for (const event of events) collector.add(event);
  return collector.turns(untilSeconds);
}

/** Cuts open turns at the end of a change: closes the first span, and leaves the rest open. */
function cutOpenTurns<Speaker>(
  turns: LiveTurn<Speaker>[],
  open: Map<Speaker, number>,
  changes: readonly SpeakerChange<Speaker>[],
): void {
  for (const [speaker, start] of open) {
    const until = Math.max(
      start,
      ...changes.filter(({ from }) => from === speaker).map(({ endSeconds }) => endSeconds),
    );
    if (until === start) continue;
    turns.push({ speaker, start, end: until });
    open.set(speaker, until);
  }
}

/** Splits a turn at the changes; returns the turn itself if they do not concern it. */
function corrected<Speaker>(
  turn: LiveTurn<Speaker>,
  changes: readonly SpeakerChange<Speaker>[],
): LiveTurn<Speaker> | LiveTurn<Speaker>[] {
  const spans: LiveTurn<Speaker>[] = [];
  let at = turn.start;
  for (const { startSeconds, endSeconds, from, to } of changes) {
    const [start, end] = [Math.max(at, startSeconds), Math.min(turn.end, endSeconds)];
    if (from !== turn.speaker || end <= start) continue;
    if (start > at) spans.push({ ...turn, start: at, end: start });
    spans.push({ speaker: to, start, end });
    at = end;
  }
  if (spans.length === 0) return turn;
  if (at < turn.end) spans.push({ ...turn, start: at });
  return spans;
}

/** Joins turns of a speaker that touch or overlap after corrections. @param turns by start */
function joined<Speaker>(turns: readonly LiveTurn<Speaker>[]): LiveTurn<Speaker>[] {
  const last = new Map<Speaker, number>();
  const out: LiveTurn<Speaker>[] = [];
  for (const turn of turns) {
    const at = last.get(turn.speaker);
    const before = at === undefined ? undefined : out[at];
    if (before && turn.start <= before.end) out[at!] = { ...before, end: Math.max(before.end, turn.end) };
    else last.set(turn.speaker, out.push(turn) - 1);
  }
  return out;
}
