import { expect, it } from 'vitest';
import { drawTerminalTimeline, palette } from './terminal.ts';

const output = {
  diarization: [
    { speaker: 'SPEAKER_00', start: 0, end: 5 },
    { speaker: 'SPEAKER_01', start: 5, end: 20 },
  ],
};
const lines = ['0.000  5.000  SPEAKER_00', '5.000  20.000  SPEAKER_01'];

it("draws a row with the speaker's share of the speech over the width of the terminal", () => {
  const text = drawTerminalTimeline(output, lines, { columns: 39, paint: palette(1) });
  expect(text).toBe(
    [
      'SPEAKER_00  █████···············   25 %',
      'SPEAKER_01  ·····███████████████   75 %',
      '            0 s           20.0 s',
      '',
      ...lines,
      '',
    ].join('\n'),
  );
});

it('gives each speaker a colour on a terminal with colours', () => {
  const text = drawTerminalTimeline(output, lines, { columns: 39, paint: palette(8) });
  const esc = String.fromCharCode(27);
  expect(text).toContain(`${esc}[38;5;33m${lines[0]}${esc}[0m`);
  expect(text).toContain(`${esc}[38;5;208m${lines[1]}${esc}[0m`);
});

it('draws nothing without turns', () => {
  expect(drawTerminalTimeline({ diarization: [] }, [''], { columns: 80, paint: palette(1) })).toBe('');
});
