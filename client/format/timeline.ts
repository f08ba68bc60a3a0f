import type { Turn } from '../sdk/types.ts';

const WIDTH = 1000;
const LABEL_WIDTH = 130;
const ROW_HEIGHT = 30;
const TOP = 44;
const PLOT_WIDTH = WIDTH - LABEL_WIDTH - 20;
/** Colours by Okabe and Ito, distinct with any colour vision, on white. */
const COLOURS = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9'];

/** Turns of one source, drawn as a row for each speaker. */
export interface Lane {
  readonly title: string;
  readonly turns: readonly Turn[];
}

/**
 * Draws an SVG with a row for each speaker over time.
 *
 * @param durationSeconds length of the recording
 */
export function drawTimeline(lanes: readonly Lane[], durationSeconds: number): string {
  const x = (seconds: number): string => (LABEL_WIDTH + (seconds / durationSeconds) * PLOT_WIDTH).toFixed(1);
  const body: string[] = [];
  let y = TOP;
  for (const { title, turns } of lanes) {
    body.push(`<text x="14" y="${y}" class="title">${escapeXml(title)}</text>`);
    y += 12;
    const speakers = [...new Set(turns.map(({ speaker }) => speaker))];
    speakers.forEach((speaker, index) => {
      const colour = COLOURS[index % COLOURS.length];
      body.push(`<text x="14" y="${y + 19}">${escapeXml(speaker)}</text>`);
      body.push(`<line x1="${x(0)}" x2="${x(durationSeconds)}" y1="${y + 15}" y2="${y + 15}" stroke="#e4e4e4"/>`);
      for (const turn of turns.filter((candidate) => candidate.speaker === speaker)) {
        const width = Math.max(1, Number(x(turn.end)) - Number(x(turn.start))).toFixed(1);
        const label = `${speaker} ${turn.start.toFixed(1)}–${turn.end.toFixed(1)} s`;
        const box = `x="${x(turn.start)}" y="${y + 5}" width="${width}" height="20" rx="3" fill="${colour}"`;
        body.push(`<rect ${box}><title>${escapeXml(label)}</title></rect>`);
      }
      y += ROW_HEIGHT;
    });
    y += 32;
  }
  const axisY = y - 18;
  body.push(`<line x1="${x(0)}" x2="${x(durationSeconds)}" y1="${axisY}" y2="${axisY}" stroke="#888"/>`);
  for (let second = 0; second <= durationSeconds; second += tickSeconds(durationSeconds)) {
    body.push(`<line x1="${x(second)}" x2="${x(second)}" y1="${axisY}" y2="${axisY + 5}" stroke="#888"/>`);
    body.push(`<text x="${x(second)}" y="${axisY + 19}" text-anchor="middle" class="tick">${second} s</text>`);
  }
  const height = axisY + 34;
  const view = `viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="Who spoke when"`;
  return `<svg xmlns="http://www.w3.org/2000/svg" ${view}>
<style>${STYLE}</style>
<rect width="${WIDTH}" height="${height}" rx="8" fill="#fff"/>
${body.join('\n')}
</svg>
`;
}

const STYLE = [
  'text{font:14px ui-monospace,Menlo,Consolas,monospace;fill:#222}',
  '.title{font:600 15px system-ui,sans-serif}',
  '.tick{font-size:12px;fill:#555}',
].join('');

/** Returns a round step that gives about ten ticks. */
function tickSeconds(durationSeconds: number): number {
  const steps = [1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600];
  return steps.find((step) => durationSeconds / step <= 12) ?? 7200;
}

function escapeXml(text: string): string {
  return text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/"/g, '&quot;');
}
