import { expect, it } from 'vitest';
import {
  aloneRanges,
  type ConfidentTurn,
  isUnsure,
  lastStarted,
  overlapSeconds,
  rangesOf,
  withConfidence,
} from './marks.ts';

const TURNS = [
  { speaker: 'A', start: 0, end: 4 },
  { speaker: 'B', start: 3, end: 6 },
  { speaker: 'A', start: 6, end: 7 },
  { speaker: 'B', start: 9, end: 10 },
];

it('divides time into ranges by the active speakers', () => {
  expect(rangesOf(TURNS)).toEqual([
    { start: 0, end: 3, speakers: ['A'] },
    { start: 3, end: 4, speakers: ['A', 'B'] },
    { start: 4, end: 6, speakers: ['B'] },
    { start: 6, end: 7, speakers: ['A'] },
    { start: 9, end: 10, speakers: ['B'] },
  ]);
  expect(rangesOf([])).toEqual([]);
});

it('finds the overlap of a turn and the ranges in which a speaker talks alone', () => {
  const ranges = rangesOf(TURNS);
  expect(TURNS.map((turn) => overlapSeconds(turn, ranges))).toEqual([1, 1, 0, 0]);
  expect(aloneRanges(ranges, 'B').map(({ start, end }) => [start, end])).toEqual([
    [4, 6],
    [9, 10],
  ]);
});

it('finds the last item that has started', () => {
  expect([-1, 0, 5.9, 6, 100].map((at) => lastStarted(TURNS, at))).toEqual([-1, 0, 1, 2, 3]);
});

it('marks a turn as unsure only if its confidence is low', () => {
  const turn = { speaker: 'A', start: 0, end: 1 };
  expect(isUnsure({ ...turn, confidence: { A: 41, B: 59 } })).toBe(true);
  expect(isUnsure({ ...turn, confidence: { A: 93 } })).toBe(false);
  expect(isUnsure(turn)).toBe(false);
});

it('adds the confidence of the turn with the longest overlap to a transcribed turn', () => {
  const turns: ConfidentTurn[] = [
    { speaker: 'A', start: 0, end: 1, confidence: { A: 90 } },
    { speaker: 'A', start: 1.2, end: 4, confidence: { A: 45, B: 55 } },
    { speaker: 'B', start: 1.2, end: 5, confidence: { B: 80 } },
  ];
  const transcribed = [
    { speaker: 'A', start: 0.5, end: 4, text: 'and so on' },
    { speaker: 'B', start: 6, end: 7, text: 'yes' },
  ];
  expect(withConfidence(transcribed, turns)).toEqual([
    { ...transcribed[0], confidence: { A: 45, B: 55 } },
    transcribed[1],
  ]);
});
