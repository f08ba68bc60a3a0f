import { describe, expect, it } from 'vitest';
import { agreement, judgeFrames, judgeTurns } from './agreement.ts';
import { segmentsFromTurns } from './der.ts';

describe('judgeFrames', () => {
  const reference = segmentsFromTurns([
    { speaker: 'a', start: 0.1, end: 0.5 },
    { speaker: 'b', start: 0.4, end: 0.7 },
  ]);
  const hypothesis = segmentsFromTurns([
    { speaker: 0, start: 0.1, end: 0.42 },
    { speaker: 1, start: 0.42, end: 0.8 },
  ]);
  const right = (speechOnly: boolean): number[] =>
    judgeFrames(reference, hypothesis, new Array(10).fill(0.5), 0.1, speechOnly).map((frame) => Number(frame.right));

  it('counts a frame as right if exactly the reference speakers are active at its centre', () => {
    // 0–0.1 silence in both; 0.1–0.4 a; 0.4–0.5 both speak, one found; 0.5–0.7 b; 0.7–0.8 silence, one found.
    expect(right(false)).toEqual([1, 1, 1, 1, 0, 1, 1, 0, 1, 1]);
    expect(right(true)).toEqual([1, 1, 1, 0, 1, 1, 0]);
  });

  it('counts frames of an unmatched speaker as wrong', () => {
    const extra = [...hypothesis, ...segmentsFromTurns([{ speaker: 2, start: 0.2, end: 0.3 }])];
    const frames = judgeFrames(reference, extra, new Array(10).fill(0.5), 0.1);
    expect(frames[2].right).toBe(false);
    expect(frames[1].right).toBe(true);
  });
});

it('judgeTurns counts a turn as right if its speaker talks for at least half of it', () => {
  const reference = segmentsFromTurns([
    { speaker: 'a', start: 0, end: 4 },
    { speaker: 'b', start: 4, end: 6 },
  ]);
  const turns = segmentsFromTurns([
    { speaker: 0, start: 0, end: 3 },
    { speaker: 0, start: 3.4, end: 4.6 },
    { speaker: 0, start: 3.7, end: 4.6 },
    { speaker: 1, start: 5, end: 6 },
    { speaker: 2, start: 5, end: 6 },
  ]).map((turn) => ({ ...turn, confidence: 0.5 }));
  expect(judgeTurns(reference, turns).map(({ right }) => right)).toEqual([true, true, false, true, false]);
});

describe('agreement', () => {
  it('returns the known values of an example', () => {
    const result = agreement([
      { confidence: 0.9, right: true },
      { confidence: 0.8, right: true },
      { confidence: 0.8, right: false },
      { confidence: 0.1, right: false },
    ]);
    // Pairs right × wrong: 0.9>0.8, 0.9>0.1, 0.8=0.8 (half), 0.8>0.1 → 3.5 of 4.
    expect(result.auc).toBeCloseTo(3.5 / 4, 12);
    // numpy.corrcoef([.9, .8, .8, .1], [1, 1, 0, 0])[0, 1]
    expect(result.correlation).toBeCloseTo(0.6246950475544242, 12);
    expect(result.calibrationError).toBeCloseTo((0.1 + 2 * 0.3 + 0.1) / 4, 12);
    expect(result.bins[8]).toEqual({ fromConfidence: 0.8, count: 2, meanConfidence: 0.8, shareRight: 0.5 });
  });

  it('returns undefined correlation and AUC without both right and wrong values', () => {
    const result = agreement([
      { confidence: 0.9, right: true },
      { confidence: 0.2, right: true },
    ]);
    expect(result.correlation).toBeUndefined();
    expect(result.auc).toBeUndefined();
    expect(agreement([]).count).toBe(0);
  });
});
