import type { EditedSpeaker } from './edits.ts';
import { type ConfidentTurn, confidenceOf, isUnsure, lastStarted } from './marks.ts';
import { element, mark } from './page.ts';
import type { Moment } from './player.ts';
import { preciseClock, type TranscribedTurn } from './turns.ts';

/** Number of rows added when the user scrolls near the last one. */
const ROWS_AT_ONCE = 200;
/** Number of turns before the last started one that are checked for the position. */
const MAX_EARLIER_TURNS = 12;
/** Height of the player at the bottom of the window, with a margin. */
const PLAYER_PIXELS = 100;

export type ListedTurn = (ConfidentTurn | (TranscribedTurn & ConfidentTurn)) & { readonly overlap?: number };

interface Row {
  readonly turn: ListedTurn;
  readonly line: HTMLElement;
  readonly play: HTMLButtonElement;
  readonly who: HTMLButtonElement;
  readonly words: readonly { readonly node: HTMLElement; readonly start: number; readonly end: number }[];
}

export interface TurnListElements {
  readonly rows: HTMLElement;
  readonly more: HTMLButtonElement;
}

export interface TurnListEvents {
  onPlay(turn: ListedTurn): void;
  /** Called when the user wants to move the turn to another speaker. */
  onMove(turn: ListedTurn, anchor: HTMLElement): void;
}

/** Shows the turns, with their words if they were transcribed. Screen readers read it instead of the timeline. */
export class TurnList {
  private rows: Row[] = [];
  private listed: readonly ListedTurn[] = [];
  private speakers: ReadonlyMap<string, EditedSpeaker> = new Map();
  private active: readonly Row[] = [];

  constructor(
    private readonly elements: TurnListElements,
    private readonly events: TurnListEvents,
  ) {
    elements.more.addEventListener('click', () => {
      const first = this.rows.length;
      this.fill(first + ROWS_AT_ONCE);
      focusRow(this.rows[first]);
    });
    const watch = new IntersectionObserver(
      (entries) => {
        if (entries.some(({ isIntersecting }) => isIntersecting)) this.fill(this.rows.length + ROWS_AT_ONCE);
      },
      { rootMargin: '800px' },
    );
    watch.observe(elements.more);
  }

  /** Shows turns. Keeps unchanged rows at the start, so that a live stream can call it often. */
  show(turns: readonly ListedTurn[], speakers: readonly EditedSpeaker[]): void {
    const known = new Map(speakers.map((speaker) => [speaker.label, speaker]));
    const rowCount = Math.max(ROWS_AT_ONCE, this.rows.length);
    let kept = 0;
    while (kept < this.rows.length && this.isUnchanged(this.rows[kept].turn, turns[kept], known)) kept++;
    const focused = this.rows.findIndex(({ line }) => line.contains(document.activeElement));
    const isSpeakerFocused = document.activeElement?.classList.contains('who');
    for (const { line } of this.rows.splice(kept)) line.remove();
    this.listed = turns;
    this.speakers = known;
    for (const { line } of this.active) line.classList.remove('now');
    this.active = [];
    this.fill(rowCount);
    const row = focused >= kept ? this.rows[Math.min(focused, this.rows.length - 1)] : undefined;
    if (isSpeakerFocused) row?.who.focus({ preventScroll: true });
    else focusRow(row);
  }

  /** Highlights the turns at the position. @param isFollowed whether to scroll to the first of them */
  move({ at, isPlaying, turn: playedTurn }: Moment, isFollowed: boolean): void {
    const last = lastStarted(this.listed, at);
    if (last >= this.rows.length && this.rows.length > 0) this.fill(last + 1);
    const active = this.rows.slice(Math.max(0, last - MAX_EARLIER_TURNS), last + 1).filter(({ turn }) => at < turn.end);
    for (const row of new Set([...this.active, ...active])) {
      const isActive = active.includes(row);
      const isPlayed = isActive && isPlaying && playedTurn !== undefined && isSameTurn(playedTurn, row.turn);
      row.line.classList.toggle('now', isActive);
      for (const { node, start, end } of row.words) node.classList.toggle('spoken', start <= at && at < end);
      if (row.play.classList.contains('pauses') === isPlayed) continue;
      row.play.classList.toggle('pauses', isPlayed);
      row.play.setAttribute('aria-label', this.playLabel(row.turn, isPlayed));
    }
    const isNew = active.length > 0 && active[0] !== this.active[0];
    this.active = active;
    if (isFollowed && isPlaying && isNew) reveal(active[0].line);
  }

  /** Scrolls to a turn and focuses it. */
  focus(turn: { readonly start: number; readonly speaker: string }): void {
    const index = this.listed.findIndex(({ start, end, speaker }) => {
      return speaker === turn.speaker && start <= turn.start + 0.01 && turn.start < end;
    });
    if (index < 0) return;
    this.fill(index + 1);
    reveal(this.rows[index].line);
    focusRow(this.rows[index]);
  }

  private isUnchanged(
    turn: ListedTurn,
    now: ListedTurn | undefined,
    speakers: ReadonlyMap<string, EditedSpeaker>,
  ): boolean {
    const [old, next] = [this.speakers.get(turn.speaker), now && speakers.get(now.speaker)];
    if (!now || !isSameTurn(turn, now) || turn.end !== now.end) return false;
    if ('fragments' in turn && turn !== now) return false;
    return old?.name === next?.name && old?.colour === next?.colour && turn.overlap === now.overlap;
  }

  private fill(count: number): void {
    const { rows, more } = this.elements;
    const next = this.listed.slice(this.rows.length, count).map((turn) => this.row(turn));
    rows.append(...next.map(({ line }) => line));
    this.rows.push(...next);
    const left = this.listed.length - this.rows.length;
    more.hidden = left <= 0;
    more.textContent = `Show more turns (${left} left)`;
  }

  private row(turn: ListedTurn): Row {
    const speaker = this.speakers.get(turn.speaker);
    const line = element('li', 'turn');
    const play = element('button', 'play');
    play.type = 'button';
    play.setAttribute('aria-label', this.playLabel(turn, false));
    play.addEventListener('click', () => this.events.onPlay(turn));
    const who = element('button', 'who', speaker?.name ?? turn.speaker);
    who.type = 'button';
    who.title = 'Move this turn to another speaker';
    who.setAttribute('aria-haspopup', 'dialog');
    who.prepend(mark(speaker?.colour ?? 0));
    who.addEventListener('click', () => this.events.onMove(turn, who));
    const when = element('span', 'when', `${preciseClock(turn.start)} to ${preciseClock(turn.end)}`);
    when.append(element('span', 'length', ` · ${(turn.end - turn.start).toFixed(1)} s`));
    line.append(play, who, when);
    if ((turn.overlap ?? 0) >= 0.1) line.append(element('span', 'badge', `overlap ${turn.overlap?.toFixed(1)} s`));
    if (isUnsure(turn)) {
      line.append(element('span', 'badge unsure', `unsure, ${Math.round(confidenceOf(turn) ?? 0)} %`));
    }
    const words: Row['words'][number][] = [];
    if ('fragments' in turn) {
      const transcript = element('p', 'said');
      for (const { text, start, end } of turn.fragments) {
        const node = start === undefined ? text : element('span', 'word', text);
        transcript.append(node);
        if (typeof node !== 'string' && start !== undefined && end !== undefined) words.push({ node, start, end });
      }
      line.append(transcript);
    }
    return { turn, line, play, who, words };
  }

  private playLabel({ speaker, start }: ListedTurn, isPlaying: boolean): string {
    return `${isPlaying ? 'Pause' : 'Play'} ${this.speakers.get(speaker)?.name ?? speaker} at ${preciseClock(start)}`;
  }
}

const isSameTurn = (one: ListedTurn, other: { readonly speaker: string; readonly start: number }): boolean =>
  one.speaker === other.speaker && one.start === other.start;

/** Focuses the play button, or the speaker's button if there is no recording and the play button is hidden. */
function focusRow(row: Row | undefined): void {
  row?.play.focus({ preventScroll: true });
  if (row && document.activeElement !== row.play) row.who.focus({ preventScroll: true });
}

/** Scrolls to a line unless it is fully visible between the picture (if that stays in view) and the player. */
function reveal(line: HTMLElement): void {
  const { top, bottom } = line.getBoundingClientRect();
  const hidden = document.querySelector('.picture.stays')?.getBoundingClientRect().bottom ?? 0;
  if (top >= hidden && bottom <= innerHeight - PLAYER_PIXELS) return;
  const isCalm = matchMedia('(prefers-reduced-motion: reduce)').matches;
  const middle = (Math.max(0, hidden) + innerHeight - PLAYER_PIXELS) / 2;
  scrollBy({ top: top - middle, behavior: isCalm ? 'auto' : 'smooth' });
}
