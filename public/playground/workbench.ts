import type { JobState } from '../../client/sdk/types.ts';
import { OUTPUT_FORMAT_NAMES, outputFormat } from '../../src/contract/output-formats.ts';
import { decodeChunks } from './decode.ts';
import {
  applyEdits,
  type Edit,
  type EditedResult,
  type EditedSpeaker,
  EditHistory,
  newLabel,
  type Output,
} from './edits.ts';
import { formatName, saveAs } from './exports.ts';
import {
  type ConfidentTurn,
  isUnsure,
  lastStarted,
  overlapSeconds,
  type Range,
  rangesOf,
  withConfidence,
} from './marks.ts';
import { button, element, find, mark } from './page.ts';
import { Peaks } from './peaks.ts';
import { type Moment, Player } from './player.ts';
import { Sheet } from './sheet.ts';
import { listenToKeys } from './shortcuts.ts';
import { askSpeaker, askTurn } from './speaker-dialogs.ts';
import { Timeline } from './timeline.ts';
import { type ListedTurn, TurnList } from './turn-list.ts';
import { clock, count, percent, preciseClock, speakersOf, summary, type Turn, transcribedTurnsOf } from './turns.ts';

/** A low rate is enough for peaks. */
const PEAKS_RATE_HZ = 8000;
const UNPLAYABLE = 'This browser cannot play the recording.';

/** A result with its changes. */
export interface OpenedResult {
  /** Name of the recording, for example of its file. */
  readonly name: string;
  readonly output: Output;
  readonly edits: readonly Edit[];
}

export interface WorkbenchEvents {
  /** Called when the user has changed the result. */
  onEdits(edits: readonly Edit[]): void;
  /** Called when the user wants to store this speaker's voice. */
  onRemember(label: string, name: string): void;
  say(message: string): void;
}

/** Shows, changes and exports a result, and plays its recording. */
export class Workbench {
  private readonly section = find('result', HTMLElement);
  private readonly bar = find('player-bar', HTMLElement);
  private readonly scroller = find('scroll', HTMLElement);
  private readonly lanes = find('lanes', HTMLElement);
  private readonly followBox = find('follow', HTMLInputElement);
  private readonly playButton = find('play', HTMLButtonElement);
  private readonly formats = find('format', HTMLSelectElement);
  private readonly sheet = new Sheet();
  private readonly player: Player;
  private readonly timeline: Timeline;
  private readonly list: TurnList;
  private name = '';
  private original: Output = { diarization: [] };
  private history = EditHistory.empty;
  private result: EditedResult = applyEdits({ diarization: [] }, []);
  private turns: readonly ConfidentTurn[] = [];
  private currentRanges: readonly Range[] = [];
  private peaks: Peaks | undefined;
  private peaksJob: AbortController | undefined;
  private blob: Blob | undefined;
  private isEditable = false;
  /** Latest end of a turn, seconds. */
  private lastEnd = 0;
  /** Length of the recording in the last drawing. */
  private shownSeconds = 0;

  constructor(private readonly events: WorkbenchEvents) {
    this.player = new Player(find('player', HTMLAudioElement), (moment) => this.onMoment(moment));
    this.timeline = new Timeline(
      {
        scroller: this.scroller,
        spacer: find('spacer', HTMLElement),
        canvas: find('canvas', HTMLCanvasElement),
        minimap: find('minimap', HTMLCanvasElement),
        lanes: this.lanes,
        picture: find('picture', HTMLElement),
      },
      {
        onSeek: (seconds) => {
          this.timeline.select(undefined);
          this.player.seek(seconds);
        },
        onSelect: (turn, seconds) => {
          this.timeline.select(turn);
          this.player.seek(seconds);
        },
      },
    );
    this.list = new TurnList(
      { rows: find('turns', HTMLElement), more: find('more', HTMLButtonElement) },
      {
        onPlay: (turn) => {
          this.timeline.select(this.turns.find((known) => known.speaker === turn.speaker && known.end > turn.start));
          if (this.player.canPlay) this.player.toggle(turn);
          this.timeline.reveal(turn.start);
        },
        onMove: (turn, anchor) => this.askTurn(turn, anchor),
      },
    );
    this.formats.append(
      ...OUTPUT_FORMAT_NAMES.map((format) => {
        const option = element('option', '', formatName(format));
        option.value = format;
        return option;
      }),
    );
    this.listen();
  }

  get isShown(): boolean {
    return !this.section.hidden;
  }

  /** Ranges of time by the active speakers. */
  get ranges(): readonly Range[] {
    return this.currentRanges;
  }

  /** The recording's file; undefined if this browser does not have it. */
  get file(): Blob | undefined {
    return this.blob;
  }

  /** Shows a result of the service. */
  open({ name, output, edits }: OpenedResult): void {
    this.name = name;
    this.original = output;
    this.history = EditHistory.of(edits);
    this.isEditable = true;
    this.section.classList.remove('live');
    this.update();
    this.section.hidden = false;
    const title = find('result-title', HTMLElement);
    title.focus({ preventScroll: true });
    this.section.scrollIntoView({ block: 'start' });
  }

  /** Shows the turns of a live stream so far. @param seconds of audio sent so far */
  showLive(turns: readonly Turn[], seconds: number, length: number, peaks: Peaks): void {
    this.name = 'microphone';
    this.peaks = peaks;
    this.isEditable = false;
    this.section.classList.add('live');
    this.original = { diarization: turns };
    this.history = EditHistory.empty;
    this.section.hidden = false;
    this.update(length);
    this.timeline.movePlayhead(seconds, true);
  }

  close(): void {
    this.load(undefined);
    this.section.hidden = true;
    this.original = { diarization: [] };
    this.history = EditHistory.empty;
    this.update();
  }

  /** Sets the recording of the result. @param recording a file, or an address, which has no waveform */
  load(recording: Blob | string | undefined): void {
    this.peaksJob?.abort();
    this.peaks = undefined;
    this.blob = recording instanceof Blob ? recording : undefined;
    this.player.load(recording);
    this.showBar(recording !== undefined);
    this.note('');
    if (this.blob) void this.readPeaks(this.blob);
  }

  /** Adds the file of a recording that plays from its address, for the waveform and for voiceprints. */
  attach(file: Blob): void {
    this.blob = file;
    // Replaces the service's address, which expires, unless playback has started.
    if (!this.player.isPlaying && this.player.at === 0) this.player.load(file);
    void this.readPeaks(file);
  }

  /** Shows a note on the recording. @param isMissing whether to ask for its file */
  note(text: string, isMissing = false): void {
    find('caption', HTMLElement).textContent = text;
    find('attach', HTMLElement).hidden = !isMissing;
  }

  rename(label: string, name: string): void {
    const [speaker, other] = [
      this.result.speakers.find((known) => known.label === label),
      this.result.speakers.find((known) => known.label !== label && known.name === name),
    ];
    if (!speaker || name === '' || name === speaker.name) return;
    // Two speakers with the same name are one person.
    if (other) this.merge(speaker, other);
    else this.edit({ kind: 'rename', speaker: label, name }, `${speaker.name} is now called ${name}.`);
  }

  private merge(speaker: EditedSpeaker, into: EditedSpeaker): void {
    const message = `${speaker.name} and ${into.name} are now one speaker.`;
    this.edit({ kind: 'merge', from: speaker.label, into: into.label }, message);
  }

  nameOf(label: string): string {
    return this.result.speakers.find((known) => known.label === label)?.name ?? label;
  }

  /** Finds the speaker of this result who talks most in the given turns. */
  speakerAt(turns: readonly Turn[]): string | undefined {
    const shared = new Map<string, number>();
    for (const turn of turns) {
      for (const { speaker, start, end } of this.turns) {
        const seconds = Math.min(end, turn.end) - Math.max(start, turn.start);
        if (seconds > 0) shared.set(speaker, (shared.get(speaker) ?? 0) + seconds);
      }
    }
    return [...shared].sort(([, a], [, b]) => b - a)[0]?.[0];
  }

  private edit(edit: Edit, message: string): void {
    this.history = this.history.with(edit);
    this.changed(`${message} Undo reverts it.`);
  }

  private changed(message: string): void {
    this.timeline.select(undefined);
    this.update();
    this.events.onEdits(this.history.edits);
    this.events.say(message);
  }

  private undo(): void {
    if (!this.history.canUndo) return;
    this.history = this.history.undo();
    this.changed('Undone.');
  }

  private redo(): void {
    if (!this.history.canRedo) return;
    this.history = this.history.redo();
    this.changed('Redone.');
  }

  /** @param length minimum length of the timeline, seconds */
  private update(length = 0): void {
    this.result = applyEdits(this.original, this.history.edits);
    const { speakers, output } = this.result;
    this.turns = output.diarization;
    this.currentRanges = rangesOf(this.turns);
    const transcribed = transcribedTurnsOf({ output } as unknown as JobState);
    const listed: ListedTurn[] = (transcribed ? withConfidence(transcribed, this.turns) : this.turns).map((turn) => {
      const overlap = overlapSeconds(turn, this.currentRanges);
      return overlap > 0 ? { ...turn, overlap } : turn;
    });
    this.lastEnd = this.turns.reduce((latest, { end }) => Math.max(latest, end), 0);
    this.lanes.setAttribute(
      'aria-label',
      summary(this.turns.map((turn) => ({ ...turn, speaker: this.nameOf(turn.speaker) }))),
    );
    this.showLanes();
    this.timeline.show({
      speakers,
      turns: this.turns,
      ranges: this.currentRanges,
      seconds: this.secondsShown(length),
      peaks: this.peaks,
    });
    this.list.show(listed, speakers);
    const title = speakers.length === 0 ? 'No speech' : count(speakers.length, 'speaker');
    find('result-title', HTMLElement).textContent = title;
    const overlap = this.currentRanges.reduce((sum, { start, end, speakers: { length: talking } }) => {
      return talking > 1 ? sum + end - start : sum;
    }, 0);
    const unsure = this.turns.filter(isUnsure).length;
    const facts = [
      count(this.turns.length, 'turn'),
      clock(this.secondsShown(length)),
      ...(overlap >= 1 ? [`overlap ${clock(overlap)}`] : []),
      ...(unsure > 0 ? [`${unsure} unsure`] : []),
      this.name,
    ];
    find('facts', HTMLElement).textContent = facts.join(' · ');
    this.section.classList.toggle('empty', this.turns.length === 0);
    find('next-unsure', HTMLButtonElement).hidden = unsure === 0;
    find('undo', HTMLButtonElement).disabled = !this.history.canUndo;
    find('redo', HTMLButtonElement).disabled = !this.history.canRedo;
    this.showPosition();
  }

  private secondsShown(length: number): number {
    const seconds = Number.isFinite(this.player.seconds) ? this.player.seconds : 0;
    return Math.max(seconds, this.peaks?.seconds ?? 0, length, this.lastEnd, 1);
  }

  private showLanes(): void {
    const talk = new Map(speakersOf(this.turns).map((speaker) => [speaker.name, speaker]));
    const hadFocus = [...this.lanes.children].findIndex((lane) => lane.contains(document.activeElement));
    this.lanes.replaceChildren(
      ...this.result.speakers.map(({ label, name, colour }) => {
        const known = talk.get(label);
        const facts = `${clock(known?.seconds ?? 0)} · ${percent(known?.share ?? 0)}`;
        const lane = element('li', 'lane');
        const open = button('', () => this.askSpeaker(label, open), 'speaker');
        open.setAttribute('aria-haspopup', 'dialog');
        open.title = name;
        open.disabled = !this.isEditable;
        open.append(mark(colour), element('span', 'name', name), element('span', 'talk', facts));
        lane.append(open);
        return lane;
      }),
    );
    if (hadFocus >= 0)
      this.lanes.children[Math.min(hadFocus, this.lanes.children.length - 1)]?.querySelector('button')?.focus();
  }

  private askSpeaker(label: string, anchor: HTMLElement): void {
    const speaker = this.result.speakers.find((known) => known.label === label);
    if (!speaker) return;
    const others = this.result.speakers.filter((known) => known.label !== label);
    askSpeaker(this.sheet, anchor, speaker, others, {
      rename: (name) => this.rename(label, name),
      recolour: (colour) =>
        this.edit({ kind: 'recolour', speaker: label, colour }, `${speaker.name} has a new colour.`),
      merge: (into) => this.merge(speaker, into),
      rememberVoice: () => this.events.onRemember(label, speaker.name),
    });
  }

  private askTurn({ speaker: from, start, end }: ListedTurn, anchor: HTMLElement): void {
    if (!this.isEditable) return;
    const title = `Turn at ${preciseClock(start)}: who speaks?`;
    askTurn(this.sheet, anchor, { title, speaker: from }, this.result.speakers, (chosen) => {
      if (chosen?.label === from) return;
      const to = chosen?.label ?? newLabel(this.original, this.history.edits);
      const message = `The turn at ${preciseClock(start)} now belongs to ${chosen?.name ?? to}.`;
      this.edit({ kind: 'move', from, to, start, end }, message);
    });
  }

  private onMoment(moment: Moment | undefined): void {
    this.playButton.classList.toggle('pauses', moment?.isPlaying === true);
    this.playButton.setAttribute('aria-label', moment?.isPlaying ? 'Pause' : 'Play');
    if (!moment) {
      this.timeline.movePlayhead(undefined, false);
      if (this.blob && !this.player.canPlay) this.note(UNPLAYABLE);
      this.showBar(this.player.canPlay);
      return;
    }
    if (this.isShown && Number.isFinite(this.player.seconds)) this.lengthen();
    this.timeline.movePlayhead(moment.at, this.followBox.checked && moment.isPlaying);
    this.list.move(moment, this.followBox.checked);
    this.showPosition(moment.at);
  }

  /** Redraws when the browser knows the length of the recording, which happens after the turns are shown. */
  private lengthen(): void {
    if (this.shownSeconds === this.player.seconds) return;
    this.shownSeconds = this.player.seconds;
    this.update();
  }

  private showPosition(at = this.player.at): void {
    const seconds = this.secondsShown(0);
    find('position', HTMLElement).textContent = `${preciseClock(at)} / ${clock(seconds)}`;
    const range = this.currentRanges[lastStarted(this.currentRanges, at)];
    const talking = range && at < range.end ? range.speakers.map((label) => this.nameOf(label)) : [];
    const names = talking.join(', ');
    const heard = find('heard', HTMLElement);
    if (heard.textContent !== names) heard.textContent = names;
    this.scroller.setAttribute('aria-valuemax', String(Math.round(seconds)));
    this.scroller.setAttribute('aria-valuenow', String(Math.min(Math.round(seconds), Math.round(at))));
    this.scroller.setAttribute('aria-valuetext', `${clock(at)}, ${names === '' ? 'no speech' : names}`);
  }

  private showBar(isShown: boolean): void {
    this.bar.hidden = !isShown;
    this.section.classList.toggle('playable', isShown);
  }

  private async readPeaks(file: Blob): Promise<void> {
    const control = new AbortController();
    this.peaksJob = control;
    const peaks = new Peaks();
    try {
      for await (const { startSeconds, samples } of decodeChunks(file, PEAKS_RATE_HZ)) {
        if (control.signal.aborted) return;
        peaks.add(samples, PEAKS_RATE_HZ, startSeconds);
        const isFirst = this.peaks === undefined;
        this.peaks = peaks;
        if (isFirst) this.update();
        else this.timeline.refresh();
      }
      if (!control.signal.aborted) this.update();
    } catch {
      // A file that the browser cannot decode, or that is too large to be decoded at once, has no waveform.
    }
  }

  private nextUnsure(): void {
    const next = this.turns.find((turn) => isUnsure(turn) && turn.start > this.player.at + 0.05);
    const turn = next ?? this.turns.find(isUnsure);
    if (!turn) return;
    this.player.seek(turn.start);
    this.timeline.select(turn);
    this.timeline.reveal(turn.start);
    this.list.focus(turn);
  }

  /** Moves to the start of the next or the previous turn. */
  private goToTurn(direction: 1 | -1): void {
    const { at } = this.player;
    const next =
      direction === 1
        ? this.turns.find(({ start }) => start > at + 0.05)
        : this.turns.findLast(({ start }) => start < at - 0.5);
    if (next) this.goTo(next.start);
  }

  private goTo(seconds: number): void {
    this.player.seek(seconds);
    this.timeline.reveal(Math.max(0, Math.min(this.secondsShown(0), seconds)));
  }

  private listen(): void {
    find('undo', HTMLButtonElement).addEventListener('click', () => this.undo());
    find('redo', HTMLButtonElement).addEventListener('click', () => this.redo());
    find('next-unsure', HTMLButtonElement).addEventListener('click', () => this.nextUnsure());
    find('zoom-in', HTMLButtonElement).addEventListener('click', () => this.timeline.zoom(2));
    find('zoom-out', HTMLButtonElement).addEventListener('click', () => this.timeline.zoom(0.5));
    find('fit', HTMLButtonElement).addEventListener('click', () => this.timeline.fit());
    find('export', HTMLButtonElement).addEventListener('click', () => {
      saveAs(this.result, outputFormat(this.formats.value) ?? 'json', this.name);
    });
    this.playButton.addEventListener('click', () => this.player.togglePlay());
    find('back', HTMLButtonElement).addEventListener('click', () => this.goTo(this.player.at - 5));
    find('ahead', HTMLButtonElement).addEventListener('click', () => this.goTo(this.player.at + 5));
    const speed = find('speed', HTMLSelectElement);
    speed.addEventListener('change', () => {
      this.player.speed = Number(speed.value);
    });
    const recording = find('recording', HTMLInputElement);
    recording.addEventListener('change', () => {
      const file = recording.files?.[0];
      recording.value = '';
      if (file) this.load(file);
    });
    listenToKeys(this.scroller, () => this.isShown, {
      undo: () => this.undo(),
      redo: () => this.redo(),
      togglePlay: () => this.player.togglePlay(),
      move: (direction) => this.goTo(this.player.at + direction * this.timeline.stepSeconds),
      moveToTurn: (direction) => this.goToTurn(direction),
      moveToStart: () => this.goTo(0),
      moveToEnd: () => this.goTo(this.secondsShown(0)),
      zoom: (factor) => this.timeline.zoom(factor),
    });
  }
}
