import { expect, it } from 'vitest';
import { piecesOf } from './pieces.ts';
import type { SpeakerSpan } from './spans.ts';

const span = (startSeconds: number, endSeconds: number, speaker = 0): SpeakerSpan => ({
  speaker,
  startSeconds,
  endSeconds,
});
const pieces = (turns: readonly SpeakerSpan[], maxSeconds = 30, durationSeconds = 1000) =>
  piecesOf({ durationSeconds, turns, exclusiveTurns: turns }, maxSeconds);

it('makes one piece of short speech, with a margin of silence', () => {
  expect(pieces([span(1, 4), span(3, 9, 1)])).toEqual([
    { audio: { startSeconds: 0.5, endSeconds: 9.5 }, owned: { startSeconds: 0.5, endSeconds: 9.5 } },
  ]);
  expect(pieces([span(0.1, 10)], 30, 10.2)[0].audio).toEqual({ startSeconds: 0, endSeconds: 10.2 });
});

it('cuts at the longest pause in the second half of a piece', () => {
  const cut = pieces([span(0, 10), span(13, 15), span(15.5, 20), span(22, 26), span(26.2, 40)]);
  expect(cut.map(({ owned }) => owned)).toEqual([
    { startSeconds: 0, endSeconds: 20.5 },
    { startSeconds: 21.5, endSeconds: 40.5 },
  ]);
});

it('leaves out long silences, and makes no pieces without speech', () => {
  expect(pieces([span(0, 3), span(9, 12)]).map(({ audio }) => audio)).toEqual([
    { startSeconds: 0, endSeconds: 3.5 },
    { startSeconds: 8.5, endSeconds: 12.5 },
  ]);
  expect(pieces([])).toEqual([]);
});

it('cuts speech without pauses at a change of speakers, or at the maximum length', () => {
  const changing = pieces([span(0, 20), span(20, 50, 1)]);
  expect(changing.map(({ owned }) => owned)).toEqual([
    { startSeconds: 0, endSeconds: 20 },
    { startSeconds: 20, endSeconds: expect.any(Number) },
    expect.anything(),
  ]);
  expect(changing[0].audio.endSeconds).toBe(21.5);
  expect(changing[1].audio.startSeconds).toBe(18.5);
  const [first, second] = pieces([span(0, 50)]);
  expect(first.owned.endSeconds).toBe(27);
  expect(second.owned.startSeconds).toBe(27);
});

it('makes ordered pieces within the maximum length that own each moment of speech once', () => {
  const turns = Array.from({ length: 3000 }, (_, i) => span(7 * i, 7 * i + 3 + ((i * 37) % 50) / 10, i % 5));
  const cut = pieces(turns, 60, 22_000);
  cut.forEach(({ audio, owned }, index) => {
    expect(audio.endSeconds - audio.startSeconds).toBeLessThanOrEqual(60);
    expect(owned.startSeconds).toBeGreaterThanOrEqual(cut[index - 1]?.owned.endSeconds ?? 0);
    expect(audio.startSeconds).toBeLessThanOrEqual(owned.startSeconds);
    expect(audio.endSeconds).toBeGreaterThanOrEqual(owned.endSeconds);
  });
  const isOwnedOnce = turns.every(({ startSeconds, endSeconds }) =>
    [startSeconds, (startSeconds + endSeconds) / 2, endSeconds - 0.001].every((second) => {
      const owners = cut.filter(({ owned }) => owned.startSeconds <= second && second < owned.endSeconds);
      return owners.length === 1;
    }),
  );
  expect(isOwnedOnce).toBe(true);
});
