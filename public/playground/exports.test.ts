import { expect, it } from 'vitest';
import { OUTPUT_FORMAT_NAMES } from '../../src/contract/output-formats.ts';
import { applyEdits } from './edits.ts';
import { exportText, formatName } from './exports.ts';

const RESULT = applyEdits(
  {
    diarization: [
      { speaker: 'SPEAKER_00', start: 0.5, end: 2 },
      { speaker: 'SPEAKER_01', start: 3, end: 4 },
    ],
  },
  [{ kind: 'rename', speaker: 'SPEAKER_00', name: 'Sarah' }],
);

it.each(OUTPUT_FORMAT_NAMES)('writes speaker names to %s', (format) => {
  const text = exportText(RESULT, format, 'a talk.mp3');
  expect(text).toContain('Sarah');
  expect(text).toContain('SPEAKER_01');
  expect(text).not.toContain('SPEAKER_00');
  expect(formatName(format)).not.toBe(format);
});

it('uses the name of the file as file id in RTTM', () => {
  expect(exportText(RESULT, 'rttm', 'a talk.mp3')).toBe(
    'SPEAKER a_talk 1 0.500 1.500 <NA> <NA> Sarah <NA> <NA>\n' +
      'SPEAKER a_talk 1 3.000 1.000 <NA> <NA> SPEAKER_01 <NA> <NA>\n',
  );
});
