import { COLOURS, prepareCanvas, readTheme, type Theme } from './canvas.ts';
import type { EditedSpeaker } from './edits.ts';
import { type ConfidentTurn, isUnsure, lastStarted, type Range } from './marks.ts';
import { MINIMAP_PIXELS, Minimap } from './minimap.ts';
import type { Peaks } from './peaks.ts';
import { clock } from './turns.ts';
import { drawWaveform } from './waveform.ts';

const MAX_PIXELS_PER_SECOND = 200;
/** Largest width of an element that browsers can lay out. */
const MAX_CONTENT_PIXELS = 8_000_000;
const RULER_PIXELS = 24;
const WAVE_PIXELS = 72;
/** Share of the window's height up to which the picture stays in view. */
const MAX_STICKY_SHARE = 0.5;
const MIN_LABEL_PIXELS = 90;
const TICK_SECONDS = [0.1, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200];

export interface TimelineContent {
  readonly speakers: readonly EditedSpeaker[];
  /** Sorted by start. */
  readonly turns: readonly ConfidentTurn[];
  readonly ranges: readonly Range[];
  /** Length of the recording, seconds. */
  readonly seconds: number;
  readonly peaks?: Peaks;
}

export interface TimelineElements {
  /** Scrolls sideways. Contains `canvas`, which stays in view, and `spacer`, which has the width of the recording. */
  readonly scroller: HTMLElement;
  readonly spacer: HTMLElement;
  readonly canvas: HTMLCanvasElement;
  readonly minimap: HTMLCanvasElement;
  /** Contains the other elements. */
  readonly picture: HTMLElement;
  /** Contains a header for each speaker, beside or above the lane. */
  readonly lanes: HTMLElement;
}

export interface TimelineEvents {
  onSeek(seconds: number): void;
  /** Called when the user clicks a turn. */
  onSelect(turn: ConfidentTurn, seconds: number): void;
}

/**
 * Draws the waveform, a lane for each speaker, and a minimap. Draws only the visible span, so that hours scroll as
 * smoothly as minutes. The browser scrolls an empty element of the full width; the canvas stays in place.
 */
export class Timeline {
  private content: TimelineContent = { speakers: [], turns: [], ranges: [], seconds: 1 };
  private lanes: ReadonlyMap<string, readonly ConfidentTurn[]> = new Map();
  private pixelsPerSecond = 0;
  private isFitted = true;
  private playhead: number | undefined;
  private selected: ConfidentTurn | undefined;
  private isDrawRequested = false;
  private readonly minimap: Minimap;
  private theme: Theme;
  /** Copy of the scroller's `scrollLeft`: reading the property would force a layout of the page. */
  private scrollLeft = 0;
  private width = 0;
  private isCompact = false;

  constructor(
    private readonly elements: TimelineElements,
    private readonly events: TimelineEvents,
  ) {
    this.theme = readTheme();
    const { scroller, canvas, minimap } = elements;
    scroller.addEventListener('scroll', () => {
      this.scrollLeft = scroller.scrollLeft;
      this.requestDraw();
    });
    scroller.addEventListener('wheel', (event) => this.onWheel(event), { passive: false });
    canvas.addEventListener('click', (event) => this.onClick(event));
    this.minimap = new Minimap(minimap, (seconds) => this.scrollTo(seconds * this.pixelsPerSecond - this.width / 2));
    new ResizeObserver(() => this.resize()).observe(scroller);
    for (const query of ['(prefers-color-scheme: dark)', '(forced-colors: active)']) {
      matchMedia(query).addEventListener('change', () => {
        this.theme = readTheme();
        this.minimap.refresh();
        this.requestDraw();
      });
    }
  }

  show(content: TimelineContent): void {
    const hasNewLength = content.seconds !== this.content.seconds;
    this.content = content;
    const lanes = new Map<string, ConfidentTurn[]>(content.speakers.map(({ label }) => [label, []]));
    for (const turn of content.turns) lanes.get(turn.speaker)?.push(turn);
    this.lanes = lanes;
    if (hasNewLength && this.width > 0) this.setZoom(this.isFitted ? 0 : this.pixelsPerSecond);
    this.placeLanes();
    this.minimap.refresh();
    this.requestDraw();
  }

  /** Redraws after new peaks. */
  refresh(): void {
    this.minimap.refresh();
    this.requestDraw();
  }

  select(turn: ConfidentTurn | undefined): void {
    this.selected = turn;
    this.requestDraw();
  }

  /** @param isFollowed whether the view moves with the playhead */
  movePlayhead(seconds: number | undefined, isFollowed: boolean): void {
    this.playhead = seconds;
    if (seconds !== undefined && isFollowed) this.reveal(seconds);
    this.requestDraw();
  }

  /** Scrolls a time that is out of view to a tenth of the width. */
  reveal(seconds: number): void {
    const x = seconds * this.pixelsPerSecond;
    const isInView = x >= this.scrollLeft && x <= this.scrollLeft + this.width;
    if (!isInView) this.scrollTo(x - this.width / 10);
  }

  /** @param factor above 1 zooms in; keeps the playhead in place, or the middle if the playhead is out of view */
  zoom(factor: number): void {
    const head = (this.playhead ?? -1) * this.pixelsPerSecond - this.scrollLeft;
    this.zoomAround(factor, head >= 0 && head <= this.width ? head : this.width / 2);
  }

  /** Shows the whole recording. */
  fit(): void {
    this.setZoom(0);
    this.scrollTo(0);
  }

  /** Step of an arrow key: a twentieth of the visible time, at most 5 s. */
  get stepSeconds(): number {
    return Math.min(5, Math.max(0.1, this.width / this.pixelsPerSecond / 20));
  }

  private get fittedZoom(): number {
    return this.width / this.content.seconds;
  }

  private setZoom(pixelsPerSecond: number): void {
    const minZoom = this.fittedZoom;
    const maxZoom = Math.max(minZoom, Math.min(MAX_PIXELS_PER_SECOND, MAX_CONTENT_PIXELS / this.content.seconds));
    this.isFitted = pixelsPerSecond <= minZoom;
    this.pixelsPerSecond = Math.min(maxZoom, Math.max(minZoom, pixelsPerSecond));
    const width = this.isFitted ? 0 : this.content.seconds * this.pixelsPerSecond;
    this.elements.spacer.style.width = `${width}px`;
    this.scrollLeft = this.elements.scroller.scrollLeft;
    this.requestDraw();
  }

  private zoomAround(factor: number, x: number): void {
    const seconds = (this.scrollLeft + x) / this.pixelsPerSecond;
    this.setZoom(this.pixelsPerSecond * factor);
    this.scrollTo(seconds * this.pixelsPerSecond - x);
  }

  private scrollTo(left: number): void {
    this.elements.scroller.scrollLeft = left;
    this.scrollLeft = this.elements.scroller.scrollLeft;
    this.requestDraw();
  }

  private onWheel(event: WheelEvent): void {
    // Browsers report a pinch on a touch pad as a wheel event with Ctrl.
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const { left } = this.elements.scroller.getBoundingClientRect();
    this.zoomAround(Math.exp(-event.deltaY / 200), event.clientX - left);
  }

  private onClick({ clientX, clientY }: MouseEvent): void {
    const { left, top } = this.elements.canvas.getBoundingClientRect();
    const seconds = (this.scrollLeft + clientX - left) / this.pixelsPerSecond;
    const lane = this.content.speakers.findIndex((_, i) => {
      const laneTop = this.laneTop(i);
      return clientY - top >= laneTop && clientY - top < laneTop + this.trackHeight;
    });
    const turns = this.lanes.get(this.content.speakers[lane]?.label) ?? [];
    // Tolerance of 2 pixels, because a turn of one pixel is hard to click.
    const slack = 2 / this.pixelsPerSecond;
    const turn = turns.findLast(({ start, end }) => start - slack <= seconds && seconds <= end + slack);
    const at = Math.min(this.content.seconds, Math.max(0, seconds));
    if (turn) this.events.onSelect(turn, at);
    else this.events.onSeek(at);
  }

  private get trackHeight(): number {
    return this.isCompact ? 24 : 32;
  }

  private get laneHeight(): number {
    return this.isCompact ? 44 + this.trackHeight : 48;
  }

  private get waveHeight(): number {
    return this.content.peaks ? WAVE_PIXELS : 0;
  }

  private laneTop(index: number): number {
    const above = this.isCompact ? 44 : 8;
    return RULER_PIXELS + this.waveHeight + index * this.laneHeight + above;
  }

  private placeLanes(): void {
    const { lanes, canvas } = this.elements;
    for (const [i, header] of [...lanes.children].entries()) {
      if (!(header instanceof HTMLElement)) continue;
      header.style.top = `${RULER_PIXELS + this.waveHeight + i * this.laneHeight}px`;
    }
    const height = RULER_PIXELS + this.waveHeight + this.content.speakers.length * this.laneHeight + 8;
    canvas.style.height = `${height}px`;
    this.elements.picture.classList.toggle('stays', height + MINIMAP_PIXELS < MAX_STICKY_SHARE * innerHeight);
    lanes.style.height = `${height}px`;
  }

  private resize(): void {
    const width = this.elements.scroller.clientWidth;
    if (width === 0 || width === this.width) return;
    this.width = width;
    this.isCompact = getComputedStyle(this.elements.lanes).position === 'absolute';
    this.elements.canvas.style.width = `${width}px`;
    this.setZoom(this.isFitted ? 0 : this.pixelsPerSecond);
    this.placeLanes();
    this.minimap.refresh();
    this.requestDraw();
  }

  private requestDraw(): void {
    if (this.isDrawRequested) return;
    this.isDrawRequested = true;
    requestAnimationFrame(() => {
      this.isDrawRequested = false;
      if (this.width === 0) return;
      this.draw();
      this.drawMinimap();
    });
  }

  private draw(): void {
    const { canvas } = this.elements;
    const { speakers } = this.content;
    const height = RULER_PIXELS + this.waveHeight + speakers.length * this.laneHeight + 8;
    const context = prepareCanvas(canvas, this.width, height);
    const [from, to] = [this.scrollLeft / this.pixelsPerSecond, (this.scrollLeft + this.width) / this.pixelsPerSecond];
    this.drawRuler(context, from, to, height);
    if (this.content.peaks) {
      const area = { from, to, width: this.width, top: RULER_PIXELS, height: this.waveHeight };
      drawWaveform(context, this.content.peaks, this.content, this.theme, area);
    }
    for (const [i, speaker] of speakers.entries()) {
      context.fillStyle = this.theme.faint;
      context.beginPath();
      context.roundRect(0, this.laneTop(i), this.width, this.trackHeight, 4);
      context.fill();
      this.drawLane(context, speaker, this.laneTop(i), from, to);
    }
    this.drawOverlaps(context, from, to);
    if (this.playhead !== undefined) {
      const x = this.playhead * this.pixelsPerSecond - this.scrollLeft;
      context.fillStyle = this.theme.page;
      context.fillRect(x - 2, 0, 4, height);
      context.fillStyle = this.theme.text;
      context.fillRect(x - 1, 0, 2, height);
      context.beginPath();
      context.arc(x, 5, 5, 0, 2 * Math.PI);
      context.fill();
    }
  }

  private drawRuler(context: CanvasRenderingContext2D, from: number, to: number, height: number): void {
    const step = TICK_SECONDS.find((seconds) => seconds * this.pixelsPerSecond >= MIN_LABEL_PIXELS) ?? 14_400;
    context.font = '12px system-ui, sans-serif';
    context.textBaseline = 'middle';
    for (let i = Math.max(0, Math.floor(from / step)); i * step <= to; i++) {
      const x = Math.round(i * step * this.pixelsPerSecond - this.scrollLeft);
      context.fillStyle = this.theme.faint;
      context.fillRect(x, 0, 1, height);
      context.fillStyle = this.theme.quiet;
      const tenths = step < 1 ? `.${Math.round(i * step * 10) % 10}` : '';
      context.fillText(`${clock(i * step + 1e-6)}${tenths}`, x + 5, RULER_PIXELS / 2);
    }
  }

  private drawLane(
    context: CanvasRenderingContext2D,
    { label, colour }: EditedSpeaker,
    top: number,
    from: number,
    to: number,
  ): void {
    const turns = this.lanes.get(label) ?? [];
    const [sure, unsure] = [new Path2D(), new Path2D()];
    let lastRight = Number.NEGATIVE_INFINITY;
    for (let i = Math.max(0, lastStarted(turns, from)); i < turns.length && turns[i].start < to; i++) {
      const turn = turns[i];
      const left = turn.start * this.pixelsPerSecond - this.scrollLeft;
      const right = Math.max(left + 1.5, turn.end * this.pixelsPerSecond - this.scrollLeft);
      if (right < lastRight + 0.5 || right < 0) continue;
      lastRight = right;
      const path = isUnsure(turn) && right - left > 6 ? unsure : sure;
      path.roundRect(left, top, right - left, this.trackHeight, Math.min(4, (right - left) / 2));
    }
    context.fillStyle = this.theme.colours[colour % COLOURS];
    context.fill(sure);
    if (colour >= COLOURS) this.hatch(context, sure, top);
    // Draws an outline, because a pale fill is hard to see.
    context.save();
    context.clip(unsure);
    context.globalAlpha = 0.35;
    context.fill(unsure);
    context.globalAlpha = 1;
    context.strokeStyle = context.fillStyle;
    context.lineWidth = 4;
    context.setLineDash([6, 4]);
    context.stroke(unsure);
    context.restore();
    if (this.selected?.speaker === label) {
      const left = this.selected.start * this.pixelsPerSecond - this.scrollLeft;
      const width = Math.max(4, (this.selected.end - this.selected.start) * this.pixelsPerSecond);
      context.strokeStyle = this.theme.text;
      context.lineWidth = 2;
      context.strokeRect(left - 2, top - 3, width + 4, this.trackHeight + 6);
    }
  }

  private drawOverlaps(context: CanvasRenderingContext2D, from: number, to: number): void {
    const { ranges, speakers } = this.content;
    const laneOf = new Map(speakers.map(({ label }, i) => [label, i]));
    const path = new Path2D();
    let lastX = -1;
    for (let i = Math.max(0, lastStarted(ranges, from)); i < ranges.length && ranges[i].start < to; i++) {
      const { start, end, speakers: talking } = ranges[i];
      const width = (end - start) * this.pixelsPerSecond;
      if (talking.length < 2 || width < 2) continue;
      const x = start * this.pixelsPerSecond - this.scrollLeft;
      if (x + width < lastX + 1) continue;
      lastX = x + width;
      for (const label of talking) path.rect(x, this.laneTop(laneOf.get(label) ?? 0), width, this.trackHeight);
    }
    context.save();
    context.clip(path);
    context.strokeStyle = this.theme.page;
    context.globalAlpha = 0.75;
    context.lineWidth = 2;
    context.beginPath();
    const [top, bottom] = [this.laneTop(0), this.laneTop(speakers.length)];
    // Offset by the scroll position, so that the stripes scroll with the recording.
    const offset = this.scrollLeft % 8;
    for (let x = -offset - (bottom - top); x < this.width; x += 8) {
      context.moveTo(x, bottom);
      context.lineTo(x + bottom - top, top);
    }
    if (lastX >= 0) context.stroke();
    context.restore();
  }

  private hatch(context: CanvasRenderingContext2D, path: Path2D, top: number): void {
    context.save();
    context.clip(path);
    context.fillStyle = this.theme.page;
    for (let y = top + 5; y < top + this.trackHeight; y += 8) context.fillRect(0, y, this.width, 2);
    context.restore();
  }

  private drawMinimap(): void {
    const isWhole = this.isFitted || this.pixelsPerSecond <= 1.01 * this.fittedZoom;
    const span = { start: this.scrollLeft / this.pixelsPerSecond, length: this.width / this.pixelsPerSecond };
    const { speakers, seconds } = this.content;
    const content = { speakers, seconds, lanes: this.lanes };
    this.minimap.draw(content, this.theme, isWhole ? undefined : span, this.playhead);
  }
}
