import { describe, expect, it } from 'vitest';
import { formatOutput } from '../format/output.ts';
import type { LiveEvent } from '../live/types.ts';
import { describeEvent, outputOf } from './live-result.ts';

const events: LiveEvent[] = [
  { kind: 'start', speaker: 'SPEAKER_00', timestampSeconds: 0.5, match: null },
  { kind: 'error', message: 'Invalid chunk size' },
  { kind: 'end', speaker: 'SPEAKER_00', timestampSeconds: 2 },
  { kind: 'start', speaker: 'SPEAKER_01', timestampSeconds: 2.25, match: null },
  { kind: 'start', speaker: 'SPEAKER_00', timestampSeconds: 3, match: 'Alice' },
  { kind: 'end', speaker: 'SPEAKER_00', timestampSeconds: 4 },
];

const correction: LiveEvent = {
  kind: 'correction',
  changes: [
    { startSeconds: 0.5, endSeconds: 2, from: 'SPEAKER_00', to: 'SPEAKER_01' },
    { startSeconds: 3, endSeconds: 4, from: 'SPEAKER_00', to: 'SPEAKER_02' },
  ],
};

describe('the result of a stream', () => {
  it('has every turn, including open ones', () => {
    expect(formatOutput(outputOf(events, false, 5), 'text', 'x')).toBe(
      '0.500  2.000  SPEAKER_00\n2.250  5.000  SPEAKER_01\n3.000  4.000  SPEAKER_00\n',
    );
  });

  it('names all turns of a speaker, including those before the match', () => {
    const output = outputOf(events, true, 5);
    expect(formatOutput(output, 'text', 'x')).toBe(
      '0.500  2.000  Alice\n2.250  5.000  SPEAKER_01\n3.000  4.000  Alice\n',
    );
    expect(output.identification?.[1]).toMatchObject({ diarizationSpeaker: 'SPEAKER_01', match: null });
  });

  it('has the corrected turns', () => {
    expect(formatOutput(outputOf([...events, correction], false, 5), 'text', 'x')).toBe(
      '0.500  2.000  SPEAKER_01\n2.250  5.000  SPEAKER_01\n3.000  4.000  SPEAKER_02\n',
    );
  });

  it('shows each event or change on one line', () => {
    expect(events.slice(-2).map(describeEvent)).toEqual(['3.000  SPEAKER_00 starts (Alice)', '4.000  SPEAKER_00 ends']);
    expect(describeEvent(events[1])).toBe('warning: Invalid chunk size');
    expect(describeEvent(correction)).toBe(
      '0.500  SPEAKER_00 becomes SPEAKER_01 until 2.000\n3.000  SPEAKER_00 becomes SPEAKER_02 until 4.000',
    );
  });
});
