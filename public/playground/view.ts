import type { Moment } from './player.ts';
import {
  clock,
  layOut,
  lengthText,
  percent,
  preciseClock,
  type SaidTurn,
  speakersOf,
  summary,
  type Turn,
} from './turns.ts';

/** Rows that are put into the table at once: a day's meeting has tens of thousands. */
const ROWS_AT_ONCE = 500;
/** Speakers that have a colour of their own; the next ones have the same, striped. */
const COLOURS = 8;

/** Marks of the scale that are further right have their label on the left of them. */
const LAST_LABEL_RIGHT = 0.9;

export interface ResultElements {
  readonly timeline: HTMLElement;
  readonly rows: HTMLElement;
  readonly more: HTMLButtonElement;
}

/** What a click does; undefined where there is nothing to play. */
export type Play = { toggle(turn: Turn): void; seek(seconds: number): void } | undefined;

interface Row {
  readonly turn: Turn;
  readonly line: HTMLElement;
  readonly words: readonly { readonly node: HTMLElement; readonly start: number; readonly end: number }[];
  readonly button?: HTMLButtonElement;
}

/**
 * Shows who spoke when, as a picture and as a table. The table says all of it in words and has the buttons, so the
 * picture is one image to a screen reader and takes part in no tab order.
 */
export class ResultView {
  private rows: Row[] = [];
  private rowsWanted = ROWS_AT_ONCE;
  private turns: readonly Turn[] = [];
  /** Of the table: with what was said, where that is known. */
  private listed: readonly (Turn | SaidTurn)[] = [];
  private colours: ReadonlyMap<string, string> = new Map();
  private play: Play;
  private playheads: readonly HTMLElement[] = [];
  private length = 1;

  constructor(private readonly elements: ResultElements) {
    elements.more.addEventListener('click', () => {
      const first = this.rows.length;
      this.rowsWanted = first + ROWS_AT_ONCE;
      this.fillTable();
      // The button may be gone, and would take the focus along.
      const { line, button } = this.rows[first];
      if (!button) line.tabIndex = -1;
      (button ?? line).focus();
    });
  }

  /** Forgets what was shown. */
  clear(): void {
    this.rowsWanted = ROWS_AT_ONCE;
    this.show([], 0, undefined);
  }

  /**
   * May be called again and again as turns come: rows that stay as they are are left alone.
   *
   * @param seconds length of the picture, at least
   * @param said the turns of the table, where what was said in them is known
   */
  show(turns: readonly Turn[], seconds: number, play: Play, said?: readonly SaidTurn[]): void {
    const listed = said ?? turns;
    const speakers = speakersOf(turns);
    const colours = new Map(speakers.map(({ name }, i) => [name, colour(i)]));
    let kept = 0;
    while (kept < this.rows.length && this.isShown(this.rows[kept], listed[kept], colours, play)) kept++;
    for (const { line } of this.rows.splice(kept)) line.remove();
    this.turns = turns;
    this.listed = listed;
    this.elements.rows.parentElement?.classList.toggle('with-text', said !== undefined);
    this.colours = colours;
    this.play = play;
    this.fillTable();
    this.drawTimeline(seconds);
  }

  /** Moves the mark to a moment, or away, and shows which turns are heard. */
  move(moment: Moment | undefined): void {
    for (const playhead of this.playheads) {
      playhead.hidden = moment === undefined;
      if (moment) place(playhead, Math.min(1, moment.at / this.length));
    }
    for (const { turn, line, button, words } of this.rows) {
      const isAsked = moment?.isPlaying === true && moment.turn === turn;
      const isHeard = moment?.isPlaying === true && !moment.turn && turn.start <= moment.at && moment.at < turn.end;
      line.classList.toggle('now', isAsked || isHeard);
      for (const { node, start, end } of words) {
        node.classList.toggle('spoken', moment?.isPlaying === true && start <= moment.at && moment.at < end);
      }
      if (button && button.classList.contains('pauses') !== isAsked) {
        button.classList.toggle('pauses', isAsked);
        button.setAttribute('aria-label', playLabel(turn, isAsked));
      }
    }
  }

  private isShown({ turn }: Row, now: Turn | undefined, colours: ReadonlyMap<string, string>, play: Play): boolean {
    return (
      now !== undefined &&
      turn.speaker === now.speaker &&
      turn.start === now.start &&
      turn.end === now.end &&
      this.colours.get(now.speaker) === colours.get(now.speaker) &&
      // A row plays the turn that it was made for.
      (play === undefined ? this.play === undefined : turn === now && play === this.play)
    );
  }

  private fillTable(): void {
    const { rows, more } = this.elements;
    const next = this.listed.slice(this.rows.length, this.rowsWanted).map((turn) => this.row(turn));
    rows.append(...next.map(({ line }) => line));
    this.rows.push(...next);
    const left = this.listed.length - this.rows.length;
    more.hidden = left === 0;
    more.textContent = `Show more turns (${left} left)`;
  }

  private row(turn: Turn | SaidTurn): Row {
    const { play } = this;
    const line = element('tr');
    const first = element('td');
    const who = element('th');
    who.scope = 'row';
    who.append(element('span', `mark ${this.colours.get(turn.speaker)}`), turn.speaker);
    const numbers = [preciseClock(turn.start), preciseClock(turn.end), lengthText(turn)];
    line.append(first, who, ...numbers.map((text) => element('td', '', text)));
    const words: Row['words'][number][] = [];
    if ('pieces' in turn) {
      const said = element('td', 'said');
      for (const { text, start, end } of turn.pieces) {
        const node = start === undefined ? text : element('span', 'word', text);
        said.append(node);
        if (typeof node !== 'string' && start !== undefined && end !== undefined) words.push({ node, start, end });
      }
      line.append(said);
    }
    if (!play) return { turn, line, words };
    const button = element('button', 'play');
    button.type = 'button';
    button.setAttribute('aria-label', playLabel(turn, false));
    button.addEventListener('click', () => play.toggle(turn));
    first.append(button);
    return { turn, line, button, words };
  }

  private drawTimeline(seconds: number): void {
    const { timeline } = this.elements;
    const { lanes, ticks, length } = layOut(this.turns, seconds);
    const speakers = speakersOf(this.turns);
    const tracks = lanes.map((lane) => this.track(lane, length));
    const drawn = speakers.map(({ name, seconds: talk, share }, i) => {
      const row = element('div', 'lane');
      const who = element('div', 'name', name);
      who.title = name;
      who.prepend(element('span', `mark ${this.colours.get(name)}`));
      row.append(who, element('div', 'number', clock(talk)), element('div', 'number', percent(share)), tracks[i].track);
      return row;
    });
    const scale = element('div', 'ticks');
    for (const { left, label } of ticks) {
      const isNearEnd = left > LAST_LABEL_RIGHT;
      const tick = element('span', isNearEnd ? 'tick before' : 'tick', label);
      if (isNearEnd) tick.style.right = `${100 * (1 - left)}%`;
      else place(tick, left);
      scale.append(tick);
    }
    const head = element('div', 'lane');
    head.append(
      element('div', 'label', 'Speaker'),
      element('div', 'label number', 'Talk'),
      element('div', 'label number', 'Share'),
      scale,
    );
    timeline.classList.toggle('playable', this.play !== undefined);
    timeline.setAttribute('aria-label', summary(this.turns));
    timeline.replaceChildren(head, ...drawn);
    this.playheads = tracks.map(({ playhead }) => playhead);
    this.length = length;
  }

  private track({ name, bars }: ReturnType<typeof layOut>['lanes'][number], length: number) {
    const { play } = this;
    const track = element('div', 'track');
    for (const { turn, left, width } of bars) {
      const bar = element('div', `bar ${this.colours.get(name)}`);
      place(bar, left, width);
      bar.title = `${name} ${preciseClock(turn.start)} to ${preciseClock(turn.end)}`;
      if (play)
        bar.addEventListener('click', (event) => {
          event.stopPropagation();
          play.toggle(turn);
        });
      track.append(bar);
    }
    if (play)
      track.addEventListener('click', ({ clientX }) => {
        const { left, width } = track.getBoundingClientRect();
        play.seek((length * (clientX - left)) / width);
      });
    const playhead = element('div', 'playhead');
    playhead.hidden = true;
    track.append(playhead);
    return { track, playhead };
  }
}

const colour = (index: number): string => `speaker-${index % COLOURS}${index < COLOURS ? '' : ' again'}`;

const playLabel = ({ speaker, start }: Turn, isPlaying: boolean): string =>
  `${isPlaying ? 'Pause' : 'Play'} ${speaker} at ${preciseClock(start)}`;

/** Set on the object, not as an attribute: the page's policy forbids styles in markup. */
function place(node: HTMLElement, left: number, width?: number): void {
  node.style.left = `${100 * left}%`;
  if (width !== undefined) node.style.width = `${100 * width}%`;
}

/** Text is always set as text: labels come from outside. */
function element<Name extends keyof HTMLElementTagNameMap>(name: Name, className = '', text?: string) {
  const node = document.createElement(name);
  if (className !== '') node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
}
