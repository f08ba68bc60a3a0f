import type { Turn } from '../sdk/types.ts';
import type { ShownOutput } from './output.ts';

/** Colours text; equal indices give equal colours. */
export type Paint = (text: string, index: number) => string;

export interface TerminalOptions {
  readonly columns: number;
  readonly paint: Paint;
}

/** Colours by Okabe and Ito, distinct with any colour vision, in the palettes of 256 and of 8 colours. */
const COLOURS_256 = [33, 208, 36, 175, 220, 81];
const COLOURS_8 = [34, 33, 32, 35, 31, 36];
const RESET = '\u001b[0m';

/** @param bits colour depth of the terminal; below 4, text is not coloured */
export function palette(bits: number): Paint {
  if (bits < 4) return (text) => text;
  return (text, index) => {
    const code =
      bits < 8 ? String(COLOURS_8[index % COLOURS_8.length]) : `38;5;${COLOURS_256[index % COLOURS_256.length]}`;
    return `\u001b[${code}m${text}${RESET}`;
  };
}

/**
 * Draws a row for each speaker over time, with the speaker's share of the speech, then prints the turns.
 *
 * @param lines the turns as text
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
    const speakerTurns = turns.filter((turn) => turn.speaker === speaker);
    const seconds = speakerTurns.reduce((sum, { start, end }) => sum + end - start, 0);
    const share = `${Math.round((100 * seconds) / talkSeconds)} %`.padStart(SHARE_WIDTH);
    const bar = Array.from({ length: width }, (_, at) => {
      const [from, to] = [(at * endSeconds) / width, ((at + 1) * endSeconds) / width];
      return speakerTurns.some(({ start, end }) => start < to && end > from) ? '█' : '·';
    }).join('');
    return `${paint(speaker.padEnd(labelWidth), index)}  ${paint(bar, index)}  ${share}\n`;
  });
  const axis = `${' '.repeat(labelWidth + 2)}${'0 s'.padEnd(width - 8)}${`${endSeconds.toFixed(1)} s`.padStart(8)}\n`;
  // Two spaces separate start, end and speaker.
  const coloured = lines.map((line) => `${paint(line, Math.max(0, speakers.indexOf(line.split('  ')[2])))}\n`);
  return `${rows.join('')}${axis}\n${coloured.join('')}`;
}

/** Characters of `100 %`. */
const SHARE_WIDTH = 5;
