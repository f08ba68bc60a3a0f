import type { Turn } from '../sdk/types.ts';
import type { ShownOutput } from './output.ts';

/** Colours text; the same index is the same colour. */
export type Paint = (text: string, index: number) => string;

export interface TerminalOptions {
  readonly columns: number;
  readonly paint: Paint;
}

/** Colours of Okabe and Ito, which people with any colour vision can tell apart, as of 256; and of 8. */
const COLOURS_256 = [33, 208, 36, 175, 220, 81];
const COLOURS_8 = [34, 33, 32, 35, 31, 36];
const RESET = '\u001b[0m';

/** @param bits that the terminal has for a colour; below 4, nothing is coloured */
export function palette(bits: number): Paint {
  if (bits < 4) return (text) => text;
  return (text, index) => {
    const code =
      bits < 8 ? String(COLOURS_8[index % COLOURS_8.length]) : `38;5;${COLOURS_256[index % COLOURS_256.length]}`;
    return `\u001b[${code}m${text}${RESET}`;
  };
}

/**
 * A row for each speaker, time to the right, with the speaker's share of the talk; below it the turns.
 *
 * @param lines the turns as text, in their order
 */
export function drawTerminalTimeline(
  output: ShownOutput,
  lines: readonly string[],
  { columns, paint }: TerminalOptions,
): string {
  const members: Readonly<Record<string, unknown>> = output;
  const turns = (members.identification ?? output.exclusiveDiarization ?? output.diarization) as readonly Turn[];
  if (turns.length === 0) return '';
  const speakers = [...new Set(turns.map(({ speaker }) => speaker))];
  const labelWidth = Math.max(...speakers.map((speaker) => speaker.length));
  const width = Math.max(10, columns - labelWidth - SHARE_WIDTH - 4);
  const endSeconds = Math.max(...turns.map(({ end }) => end));
  const talkSeconds = turns.reduce((sum, { start, end }) => sum + end - start, 0);
  const rows = speakers.map((speaker, index) => {
    const own = turns.filter((turn) => turn.speaker === speaker);
    const seconds = own.reduce((sum, { start, end }) => sum + end - start, 0);
    const share = `${Math.round((100 * seconds) / talkSeconds)} %`.padStart(SHARE_WIDTH);
    const bar = Array.from({ length: width }, (_, at) => {
      const [from, to] = [(at * endSeconds) / width, ((at + 1) * endSeconds) / width];
      return own.some(({ start, end }) => start < to && end > from) ? '█' : '·';
    }).join('');
    return `${paint(speaker.padEnd(labelWidth), index)}  ${paint(bar, index)}  ${share}\n`;
  });
  const axis = `${' '.repeat(labelWidth + 2)}${'0 s'.padEnd(width - 8)}${`${endSeconds.toFixed(1)} s`.padStart(8)}\n`;
  const coloured = lines.map((line) => {
    const index = speakers.findIndex((speaker) => line.includes(speaker));
    return `${paint(line, Math.max(0, index))}\n`;
  });
  return `${rows.join('')}${axis}\n${coloured.join('')}`;
}

/** ` 100 %`. */
const SHARE_WIDTH = 5;
