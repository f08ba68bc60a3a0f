import { expect, it } from 'vitest';
import type { SpeakerVoice } from '../diarization/diarization.ts';
import { matchSpeakers } from './match.ts';
import { logOddsOf, probabilityOf } from './score.ts';

const unit = (...values: number[]): Float32Array => {
  const length = Math.hypot(...values);
  return Float32Array.from(values, (value) => value / length);
};
const voice = (embedding: Float32Array, secondsAlone = 10): SpeakerVoice => ({
  embeddingId: 'e',
  embedding,
  secondsAlone,
});
const parameters = { slope: 2, offset: -0.5 };

it('is a logistic map of the cosine similarity', () => {
  const [a, b] = [voice(unit(1, 0)), voice(unit(1, 1))];
  const odds = logOddsOf([a], [a, b], parameters);
  expect(odds[0]).toBeCloseTo(2 - 0.5, 6);
  expect(odds[1]).toBeCloseTo(2 * Math.SQRT1_2 - 0.5, 6);
});

it('does not depend on which of the two was enrolled', () => {
  const [a, b] = [voice(unit(1, 0.2)), voice(unit(0.1, 1))];
  expect(logOddsOf([a], [b], parameters)).toEqual(logOddsOf([b], [a], parameters));
});

it('orders voices that are all unlike somebody: the first of them was the likeliest', () => {
  const steep = { slope: 200, offset: 0 };
  const [stranger, nobody] = [voice(unit(0, 1)), voice(new Float32Array(0), 0)];
  const others = [voice(unit(1, -0.9)), voice(unit(1, -0.3)), voice(unit(1, -0.5)), nobody];
  const odds = logOddsOf([stranger], others, steep);
  expect([...odds].every((value) => value < -12)).toBe(true);
  expect([...odds.keys()].sort((a, b) => odds[b] - odds[a])).toEqual([1, 2, 0, 3]);
  expect([...odds].map(probabilityOf).every(Number.isFinite)).toBe(true);
  for (const exclusive of [true, false])
    expect(matchSpeakers(odds, 1, others.length, { threshold: 0, exclusive })[0].match).toBe(1);
});

it('matches a speaker without any speech alone to no voice', () => {
  const nobody = voice(new Float32Array(0), 0);
  expect(probabilityOf(logOddsOf([nobody], [voice(unit(1, 0))], parameters)[0])).toBeLessThan(0.001);
});
