import { COLOURS, type Theme } from './canvas.ts';
import type { EditedSpeaker } from './edits.ts';
import { lastStarted, type Range } from './marks.ts';
import type { Peaks } from './peaks.ts';

/** Width of a column of the waveform, and the distance from one column to the next. */
const [COLUMN_PIXELS, COLUMN_STEP] = [2, 3];

/** The visible span in seconds, and its position in the canvas in pixels. */
interface Area {
  readonly from: number;
  readonly to: number;
  readonly width: number;
  readonly top: number;
  readonly height: number;
}

/** Draws the waveform in the colours of the speakers, and overlap in the colour of the text. */
export function drawWaveform(
  context: CanvasRenderingContext2D,
  peaks: Peaks,
  { ranges, speakers }: { readonly ranges: readonly Range[]; readonly speakers: readonly EditedSpeaker[] },
  theme: Theme,
  { from, to, width, top, height }: Area,
): void {
  const colours = new Map(speakers.map(({ label, colour }) => [label, theme.colours[colour % COLOURS]]));
  const paths = new Map<string, Path2D>();
  const secondsPerStep = ((to - from) / width) * COLUMN_STEP;
  // Columns lie on a fixed grid of the recording, so that their heights do not change while it scrolls.
  const first = Math.floor(from / secondsPerStep);
  let range = Math.max(0, lastStarted(ranges, from));
  for (let i = first; i * secondsPerStep < to; i++) {
    const [start, end] = [i * secondsPerStep, (i + 1) * secondsPerStep];
    if (start >= peaks.seconds) break;
    const middle = (start + end) / 2;
    while (range < ranges.length && ranges[range].end <= middle) range++;
    const current = ranges[range];
    const talking = current && current.start <= middle ? current.speakers : [];
    const colour = talking.length === 0 ? theme.line : talking.length > 1 ? theme.text : colours.get(talking[0]);
    const path = paths.get(colour ?? theme.line) ?? new Path2D();
    paths.set(colour ?? theme.line, path);
    const size = Math.max(2, Math.sqrt(peaks.loudest(start, end)) * (height - 8));
    path.rect(((start - from) / (to - from)) * width, top + (height - size) / 2, COLUMN_PIXELS, size);
  }
  for (const [colour, path] of paths) {
    context.fillStyle = colour;
    context.fill(path);
  }
}
