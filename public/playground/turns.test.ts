import { expect, it } from 'vitest';
import type { JobState } from '../../client/sdk/types.ts';
import { clock, liveLength, preciseClock, speakersOf, summary, transcribedTurnsOf } from './turns.ts';

const TURNS = [
  { speaker: 'SPEAKER_00', start: 0.8, end: 10.8 },
  { speaker: 'SPEAKER_01', start: 10, end: 40 },
  { speaker: 'SPEAKER_00', start: 50, end: 80 },
];

it('lists speakers by label with the seconds and the share of their speech', () => {
  expect(speakersOf(TURNS)).toEqual([
    { name: 'SPEAKER_00', seconds: 40, turns: 2, share: 40 / 70 },
    { name: 'SPEAKER_01', seconds: 30, turns: 1, share: 30 / 70 },
  ]);
  expect(speakersOf([])).toEqual([]);
  const labels = ['SPEAKER_10', 'SPEAKER_9', 'SPEAKER_2'].map((speaker) => ({ speaker, start: 0, end: 1 }));
  expect(speakersOf(labels).map(({ name }) => name)).toEqual(['SPEAKER_2', 'SPEAKER_9', 'SPEAKER_10']);
  expect(summary(TURNS)).toBe('2 speakers, 3 turns. Talk: SPEAKER_00 0:40 (57 %), SPEAKER_01 0:30 (43 %).');
  expect(summary(TURNS.slice(1, 2))).toMatch(/^1 speaker, 1 turn\./);
  expect(summary([])).toBe('No speech.');
});

it('formats times like a clock, rounded down', () => {
  expect([0, 65, 3665, 59.99].map(clock)).toEqual(['0:00', '1:05', '1:01:05', '0:59']);
  expect([0, 65.26, 59.96, 3.3, 2.3].map(preciseClock)).toEqual(['0:00.0', '1:05.2', '0:59.9', '0:03.3', '0:02.3']);
});

it('makes the timeline of a live stream long enough with few changes of its length', () => {
  const lengths = Array.from({ length: 3600 * 5 }, (_, second) => liveLength(second));
  lengths.forEach((length, second) => void expect(length).toBeGreaterThanOrEqual(second));
  expect(new Set(lengths).size).toBeLessThan(15);
  expect([liveLength(0), liveLength(31), liveLength(3601)]).toEqual([30, 60, 7200]);
});

it('splits a transcribed turn into words with times and the text between them', () => {
  const words = [
    { start: 1, end: 1.4, text: 'Good', speaker: 'SPEAKER_00' },
    { start: 1.5, end: 2, text: 'morning.', speaker: 'SPEAKER_00' },
    { start: 2.5, end: 3, text: '你', speaker: 'SPEAKER_01' },
    { start: 3, end: 3.5, text: '好', speaker: 'SPEAKER_01' },
  ];
  const turns = [
    { start: 1, end: 2, text: 'Good morning.', speaker: 'SPEAKER_00' },
    { start: 2.5, end: 3.5, text: '你好', speaker: 'SPEAKER_01' },
  ];
  const output = { diarization: TURNS, wordLevelTranscription: words, turnLevelTranscription: turns };
  const transcribed = transcribedTurnsOf({ output } as unknown as JobState) ?? [];
  expect(transcribed.map(({ fragments }) => fragments.map(({ text }) => text).join(''))).toEqual(
    turns.map(({ text }) => text),
  );
  expect(transcribed[0].fragments).toEqual([
    { text: 'Good', start: 1, end: 1.4 },
    { text: ' ' },
    { text: 'morning.', start: 1.5, end: 2 },
  ]);
  expect(transcribed[1]).toMatchObject({ speaker: 'SPEAKER_01', start: 2.5, end: 3.5, fragments: { length: 2 } });
  expect(transcribedTurnsOf({ output: { diarization: TURNS } } as unknown as JobState)).toBeUndefined();
});
