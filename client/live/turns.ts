/** A turn of a stream. */
export interface LiveTurn<Speaker> {
  readonly speaker: Speaker;
  readonly start: number;
  readonly end: number;
}

/** What was told of `from` between two moments is `to`'s; earlier corrections count. */
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

/** The turns of a stream while its events come: each is applied once, however often the turns are asked for. */
export class TurnCollector<Speaker extends string | number> {
  /** Where the open turns begin. */
  readonly #open = new Map<Speaker, number>();
  /** The others, as they were closed or corrected. */
  #closed: LiveTurn<Speaker>[] = [];

  /** Takes the next event; those that tell nothing of turns change nothing. */
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
   * The turns by now, by start, then by speaker. Turns that have ended and that no correction has to do with are the same objects every time.
   *
   * @param untilSeconds where turns end that are still open; such turns are left out without it
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
 * The turns that start and end events tell, corrected where corrections come, by start, then by speaker.
 *
 * @param untilSeconds where turns end that are still open, as after a lost connection; such turns are left out without it
 */
export function collectTurns<Speaker extends string | number>(
  events: Iterable<StreamEvent<Speaker>>,
  untilSeconds?: number,
): LiveTurn<Speaker>[] {
  const collector = new TurnCollector<Speaker>();
  for (const event of events) collector.add(event);
  return collector.turns(untilSeconds);
}

/** What a change covers of an open turn is closed; the rest goes on. */
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

/** A turn in the pieces that the changes make of it; itself where they make nothing of it. */
function corrected<Speaker>(
  turn: LiveTurn<Speaker>,
  changes: readonly SpeakerChange<Speaker>[],
): LiveTurn<Speaker> | LiveTurn<Speaker>[] {
  const pieces: LiveTurn<Speaker>[] = [];
  let at = turn.start;
  for (const { startSeconds, endSeconds, from, to } of changes) {
    const [start, end] = [Math.max(at, startSeconds), Math.min(turn.end, endSeconds)];
    if (from !== turn.speaker || end <= start) continue;
    if (start > at) pieces.push({ ...turn, start: at, end: start });
    pieces.push({ speaker: to, start, end });
    at = end;
  }
  if (pieces.length === 0) return turn;
  if (at < turn.end) pieces.push({ ...turn, start: at });
  return pieces;
}

/** Turns of one speaker that touch or overlap, as corrections leave them, are one. @param turns by start */
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
