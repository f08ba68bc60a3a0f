import { layOut, preciseClock, speakersOf, summary, type Turn } from './turns.ts';

/** Rows that are put into the table at once: a day's meeting has tens of thousands. */
const ROWS_AT_ONCE = 500;
/** Speakers that have a colour of their own; the next ones begin anew. */
const COLOURS = 8;

export interface ResultElements {
  readonly timeline: HTMLElement;
  readonly summary: HTMLElement;
  readonly rows: HTMLElement;
  readonly more: HTMLButtonElement;
}

/** Plays a turn; undefined where there is nothing to play. */
export type Play = ((turn: Turn) => void) | undefined;

/**
 * Shows who spoke when, as a picture and as a table. The table says all of it in words and has the buttons, so the picture is
 * one image to a screen reader and takes part in no tab order.
 *
 * @returns moves the mark in the picture to a moment, or away
 */
export function showTurns(
  elements: ResultElements,
  turns: readonly Turn[],
  seconds: number,
  play: Play,
): (moment: number | undefined) => void {
  const colours = new Map(speakersOf(turns).map(({ name }, i) => [name, `speaker-${i % COLOURS}`]));
  const words = summary(turns);
  elements.summary.textContent = words;
  elements.timeline.setAttribute('aria-label', words);
  fillTable(elements, turns, colours, play);
  return drawTimeline(elements.timeline, turns, seconds, colours, play);
}

function drawTimeline(
  into: HTMLElement,
  turns: readonly Turn[],
  seconds: number,
  colours: ReadonlyMap<string, string>,
  play: Play,
): (moment: number | undefined) => void {
  const { lanes, ticks, length } = layOut(turns, seconds);
  const marks: HTMLElement[] = [];
  const drawn = lanes.map(({ name, bars }) => {
    const track = element('div', 'track');
    for (const { turn, left, width } of bars) {
      const bar = element('div', `bar ${colours.get(name)}`);
      place(bar, left, width);
      bar.title = `${name} ${preciseClock(turn.start)} to ${preciseClock(turn.end)}`;
      if (play) bar.addEventListener('click', () => play(turn));
      track.append(bar);
    }
    const mark = element('div', 'playhead');
    mark.hidden = true;
    marks.push(mark);
    track.append(mark);
    const lane = element('div', 'lane');
    lane.append(element('div', 'name', name), track);
    return lane;
  });
  const axis = element('div', 'axis');
  const scale = element('div', 'ticks');
  for (const { left, label } of ticks) {
    const tick = element('span', 'tick', label);
    place(tick, left);
    scale.append(tick);
  }
  axis.append(scale);
  into.classList.toggle('playable', play !== undefined);
  into.replaceChildren(...drawn, axis);
  return (moment) => {
    for (const mark of marks) {
      mark.hidden = moment === undefined;
      if (moment !== undefined) place(mark, Math.min(1, moment / length));
    }
  };
}

function fillTable(
  { rows, more }: ResultElements,
  turns: readonly Turn[],
  colours: ReadonlyMap<string, string>,
  play: Play,
): void {
  let shown = 0;
  const showMore = (): void => {
    const next = turns.slice(shown, shown + ROWS_AT_ONCE);
    rows.append(...next.map((turn) => row(turn, colours.get(turn.speaker) ?? '', play)));
    shown += next.length;
    more.hidden = shown >= turns.length;
    more.textContent = `Show more turns (${turns.length - shown} left)`;
  };
  rows.replaceChildren();
  more.onclick = showMore;
  showMore();
}

function row(turn: Turn, colour: string, play: Play): HTMLElement {
  const line = element('tr');
  const who = element('th');
  who.scope = 'row';
  who.append(element('span', `mark ${colour}`), turn.speaker);
  const cells = [preciseClock(turn.start), preciseClock(turn.end), (turn.end - turn.start).toFixed(1)];
  const last = element('td');
  if (play) {
    const button = element('button', '', 'Play');
    button.type = 'button';
    button.setAttribute('aria-label', `Play ${turn.speaker} at ${preciseClock(turn.start)}`);
    button.addEventListener('click', () => play(turn));
    last.append(button);
  }
  line.append(who, ...cells.map((text) => element('td', '', text)), last);
  return line;
}

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
