import { COLOURS, prepareCanvas, type Theme } from './canvas.ts';
import type { EditedSpeaker } from './edits.ts';
import type { Turn } from './turns.ts';

export const MINIMAP_PIXELS = 36;

/** Speakers with their turns, and the length of the recording. */
export interface MinimapContent {
  readonly speakers: readonly EditedSpeaker[];
  readonly lanes: ReadonlyMap<string, readonly Turn[]>;
  readonly seconds: number;
}

/** An overview of the whole recording in which the user can move the visible span. */
export class Minimap {
  /** Cached, because drawing every turn takes too long for each frame. */
  private image: HTMLCanvasElement | undefined;
  private seconds = 1;

  /** @param onMove called with the time to show in the middle of the timeline, seconds */
  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly onMove: (seconds: number) => void,
  ) {
    canvas.addEventListener('pointerdown', (event) => {
      canvas.setPointerCapture(event.pointerId);
      this.move(event);
    });
    canvas.addEventListener('pointermove', (event) => {
      if (canvas.hasPointerCapture(event.pointerId)) this.move(event);
    });
  }

  /** Drops the cached image after a change of the content or the theme. */
  refresh(): void {
    this.image = undefined;
  }

  /** @param span visible seconds; undefined hides the minimap, because the whole recording is visible */
  draw(
    content: MinimapContent,
    theme: Theme,
    span: { readonly start: number; readonly length: number } | undefined,
    playhead: number | undefined,
  ): void {
    this.seconds = content.seconds;
    this.canvas.hidden = span === undefined;
    if (!span) return;
    const width = this.canvas.clientWidth;
    if (width === 0) return;
    if (this.image?.width !== Math.round(width * devicePixelRatio)) this.image = imageOf(content, theme, width);
    const context = prepareCanvas(this.canvas, width, MINIMAP_PIXELS);
    context.drawImage(this.image, 0, 0, width, MINIMAP_PIXELS);
    const pixelsPerSecond = width / content.seconds;
    const frameWidth = Math.max(6, span.length * pixelsPerSecond);
    context.strokeStyle = theme.text;
    context.lineWidth = 2;
    const left = Math.min(width - frameWidth, span.start * pixelsPerSecond);
    context.strokeRect(left + 1, 1, frameWidth - 2, MINIMAP_PIXELS - 2);
    if (playhead === undefined) return;
    context.fillStyle = theme.text;
    context.fillRect(playhead * pixelsPerSecond - 1, 0, 2, MINIMAP_PIXELS);
  }

  private move({ clientX }: PointerEvent): void {
    const { left, width } = this.canvas.getBoundingClientRect();
    this.onMove(((clientX - left) / width) * this.seconds);
  }
}

function imageOf({ speakers, lanes, seconds }: MinimapContent, theme: Theme, width: number): HTMLCanvasElement {
  const image = document.createElement('canvas');
  const context = prepareCanvas(image, width, MINIMAP_PIXELS);
  context.fillStyle = theme.faint;
  context.fillRect(0, 0, width, MINIMAP_PIXELS);
  const height = (MINIMAP_PIXELS - 4) / Math.max(1, speakers.length);
  for (const [i, { label, colour }] of speakers.entries()) {
    context.fillStyle = theme.colours[colour % COLOURS];
    for (const { start, end } of lanes.get(label) ?? []) {
      const turnWidth = Math.max(0.5, ((end - start) / seconds) * width);
      context.fillRect((start / seconds) * width, 2 + i * height, turnWidth, Math.max(1, height - 1));
    }
  }
  return image;
}
