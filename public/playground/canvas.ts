/** Number of speaker colours in the style sheet; further speakers repeat them with stripes. */
export const COLOURS = 8;

/** Colours of the style sheet. */
export interface Theme {
  readonly text: string;
  readonly quiet: string;
  readonly faint: string;
  readonly page: string;
  readonly line: string;
  readonly colours: readonly string[];
}

export function readTheme(): Theme {
  const style = getComputedStyle(document.documentElement);
  const colour = (name: string) => style.getPropertyValue(`--${name}`).trim();
  return {
    text: colour('text'),
    quiet: colour('quiet'),
    faint: colour('faint'),
    page: colour('page'),
    line: colour('line'),
    colours: Array.from({ length: COLOURS }, (_, i) => colour(`speaker-${i}`)),
  };
}

/** Sets the size of a canvas in device pixels and clears it. */
export function prepareCanvas(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D {
  const [pixelWidth, pixelHeight] = [Math.round(width * devicePixelRatio), Math.round(height * devicePixelRatio)];
  const context = canvas.getContext('2d');
  if (!context) throw new Error('this browser has no canvas');
  if (canvas.width !== pixelWidth || canvas.height !== pixelHeight) {
    canvas.width = pixelWidth;
    canvas.height = pixelHeight;
  }
  context.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}
