import { describe, expect, it } from 'vitest';
import { applyEdits, EditHistory, namedOutput, newLabel, type Output } from './edits.ts';

const OUTPUT: Output = {
  diarization: [
    { speaker: 'SPEAKER_00', start: 0, end: 4, confidence: { SPEAKER_00: 90, SPEAKER_01: 20 } },
    { speaker: 'SPEAKER_01', start: 3, end: 6, confidence: { SPEAKER_00: 10, SPEAKER_01: 80 } },
    { speaker: 'SPEAKER_02', start: 8, end: 10, confidence: { SPEAKER_02: 50 } },
  ],
  turnLevelTranscription: [
    { speaker: 'SPEAKER_00', start: 0, end: 4, text: 'Good morning.' },
    { speaker: 'SPEAKER_01', start: 3, end: 6, text: 'Hello.' },
  ],
  identification: [{ speaker: 'Alice', start: 0, end: 4, diarizationSpeaker: 'SPEAKER_00', match: 'Alice' }],
};
const turns = (result: ReturnType<typeof applyEdits>) =>
  result.output.diarization.map(({ speaker, start, end }) => [speaker, start, end]);

describe('applyEdits', () => {
  it('renames a speaker only in the saved output', () => {
    const result = applyEdits(OUTPUT, [{ kind: 'rename', speaker: 'SPEAKER_00', name: 'Sarah' }]);
    expect(result.speakers.map(({ label, name }) => [label, name])).toEqual([
      ['SPEAKER_00', 'Sarah'],
      ['SPEAKER_01', 'SPEAKER_01'],
      ['SPEAKER_02', 'SPEAKER_02'],
    ]);
    expect(result.output).toEqual(OUTPUT);
    const saved = namedOutput(result);
    expect(saved.diarization[0]).toEqual({
      speaker: 'Sarah',
      start: 0,
      end: 4,
      confidence: { Sarah: 90, SPEAKER_01: 20 },
    });
    expect(saved.turnLevelTranscription).toMatchObject([{ speaker: 'Sarah' }, { speaker: 'SPEAKER_01' }]);
    // This member contains the names of the service.
    expect(saved).not.toHaveProperty('identification');
  });

  it('merges two speakers and joins their overlapping turns', () => {
    const result = applyEdits(OUTPUT, [{ kind: 'merge', from: 'SPEAKER_01', into: 'SPEAKER_00' }]);
    expect(turns(result)).toEqual([
      ['SPEAKER_00', 0, 6],
      ['SPEAKER_02', 8, 10],
    ]);
    expect(result.output.diarization[0].confidence).toEqual({ SPEAKER_00: 90 });
    expect(result.output.turnLevelTranscription).toMatchObject([{ speaker: 'SPEAKER_00' }, { speaker: 'SPEAKER_00' }]);
    // The other speakers keep their colours.
    expect(result.speakers).toMatchObject([
      { label: 'SPEAKER_00', colour: 0 },
      { label: 'SPEAKER_02', colour: 2 },
    ]);
  });

  it('moves a span of a turn and its words to another speaker', () => {
    const move = { kind: 'move', from: 'SPEAKER_01', to: 'SPEAKER_02', start: 3.5, end: 6 } as const;
    const result = applyEdits(OUTPUT, [move]);
    expect(turns(result)).toEqual([
      ['SPEAKER_00', 0, 4],
      ['SPEAKER_01', 3, 3.5],
      ['SPEAKER_02', 3.5, 6],
      ['SPEAKER_02', 8, 10],
    ]);
    expect(result.output.turnLevelTranscription).toMatchObject([{ speaker: 'SPEAKER_00' }, { speaker: 'SPEAKER_02' }]);
  });

  it('changes the colour of a speaker, and gives a new speaker a free label', () => {
    const { speakers } = applyEdits(OUTPUT, [{ kind: 'recolour', speaker: 'SPEAKER_01', colour: 6 }]);
    expect(speakers.map(({ colour }) => colour)).toEqual([0, 6, 2]);
    expect(newLabel(OUTPUT, [])).toBe('SPEAKER_03');
  });

  it('gives a new speaker a label that no merged speaker had', () => {
    const edits = [
      { kind: 'rename', speaker: 'SPEAKER_01', name: 'Tom' },
      { kind: 'merge', from: 'SPEAKER_01', into: 'SPEAKER_00' },
    ] as const;
    const label = newLabel(OUTPUT, edits);
    const { speakers } = applyEdits(OUTPUT, [
      ...edits,
      { kind: 'move', from: 'SPEAKER_02', to: label, start: 8, end: 10 },
    ]);
    expect(speakers.find((speaker) => speaker.label === label)?.name).toBe(label);
    const moved = { kind: 'move', from: 'SPEAKER_00', to: label, start: 0, end: 1 } as const;
    expect(newLabel(OUTPUT, [moved])).toBe('SPEAKER_04');
  });

  it('undoes and redoes edits, and drops undone edits at a new one', () => {
    const [one, two, three] = ['A', 'B', 'C'].map((name) => ({ kind: 'rename', speaker: 'S', name }) as const);
    const history = EditHistory.empty.with(one).with(two).undo();
    expect([history.edits, history.canUndo, history.canRedo]).toEqual([[one], true, true]);
    expect(history.redo().edits).toEqual([one, two]);
    expect(history.with(three).edits).toEqual([one, three]);
    expect(history.undo().undo().edits).toEqual([]);
  });
});
