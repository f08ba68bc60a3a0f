import { describe, expect, it } from 'vitest';
import type { Plda, SpeakerVoice } from '../diarization/index.ts';
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
const parameters = { score: 'plda' as const, slope: 2, offset: -0.5, secondsPerObservation: 5, maxObservations: 3 };

/** The identity: features are the embeddings times √2, the variance between speakers 4 and 1. */
const plda: Plda = {
  embedding: 'e',
  inputs: 2,
  outputs: 2,
  mean: Float64Array.of(0, 0),
  offset: Float64Array.of(0, 0),
  transform: Float64Array.of(1, 0, 0, 1),
  phi: Float64Array.of(4, 1),
};

/** Log-likelihood ratio of means of n and m observations, from the joint normal distribution. */
function ratioOf(x: ArrayLike<number>, y: ArrayLike<number>, n: number, m: number): number {
  let ratio = 0;
  for (let d = 0; d < 2; d++) {
    const between = plda.phi[d];
    const density = (c: number) => {
      const [p, q] = [between + 1 / n, between + 1 / m];
      const determinant = p * q - c * c;
      return -0.5 * (Math.log(determinant) + (q * x[d] ** 2 - 2 * c * x[d] * y[d] + p * y[d] ** 2) / determinant);
    };
    ratio += density(between) - density(0);
  }
  return ratio;
}
const doubled = (embedding: Float32Array) => embedding.map((value) => value * Math.SQRT2);

describe('without a PLDA', () => {
  it('is a logistic map of the cosine similarity', () => {
    const [a, b] = [voice(unit(1, 0)), voice(unit(1, 1))];
    const odds = logOddsOf([a], [a, b], { ...parameters, score: 'cosine' }, undefined);
    expect(() => logOddsOf([a], [b], parameters, undefined)).toThrow(/PLDA/);
    expect(odds[0]).toBeCloseTo(2 - 0.5, 6);
    expect(odds[1]).toBeCloseTo(2 * Math.SQRT1_2 - 0.5, 6);
  });
});

describe('with a PLDA', () => {
  it('is a logistic map of the log-likelihood ratio, computed from the joint normal distribution', () => {
    const [a, b] = [voice(unit(1, 0.5), 10), voice(unit(0.8, -0.3), 0)];
    // Observations: min(3, 1 + 10 / 5) = 3 and 1.
    const expected = ratioOf(doubled(a.embedding), doubled(b.embedding), 3, 1) / 2;
    expect(logOddsOf([a], [b], parameters, plda)[0]).toBeCloseTo(2 * expected - 0.5, 5);
    const long = voice(a.embedding, 1000);
    expect(logOddsOf([long], [b], parameters, plda)).toEqual(logOddsOf([a], [b], parameters, plda));
  });

  it('does not depend on which of the two was enrolled', () => {
    const [a, b] = [voice(unit(1, 0.2), 3), voice(unit(0.1, 1), 30)];
    expect(logOddsOf([a], [b], parameters, plda)[0]).toBeCloseTo(logOddsOf([b], [a], parameters, plda)[0], 9);
  });

  it('is surer with more speech', () => {
    const scores = [0, 5, 10].map((seconds) => {
      const speech = voice(unit(1, 0.1), seconds);
      return logOddsOf([speech], [speech], parameters, plda)[0];
    });
    expect(scores[1]).toBeGreaterThan(scores[0]);
    expect(scores[2]).toBeGreaterThan(scores[1]);
  });
});

describe('with a cohort', () => {
  const strangers = [
    [1, 0],
    [0, 1],
    [-1, 1],
    [2, 2],
  ];
  const cohort = { values: Int8Array.from(strangers.flat()), scale: 0.5 };
  const known = { ...plda, cohort };

  it('takes off what the two score against those strangers that they are most like', () => {
    const [a, b] = [voice(unit(1, 0.5), 10), voice(unit(0.8, -0.3), 0)];
    const [x, y] = [doubled(a.embedding), doubled(b.embedding)];
    const highest = (mean: Float32Array, n: number) => {
      const ratios = strangers.map((stranger) => ratioOf(mean, [stranger[0] / 2, stranger[1] / 2], n, 1));
      const [first, second] = ratios.sort((p, q) => q - p);
      return (first + second) / 2;
    };
    const expected = (ratioOf(x, y, 3, 1) - (highest(x, 3) + highest(y, 1)) / 2) / 2;
    expect(logOddsOf([a], [b], { ...parameters, cohortTop: 2 }, known)[0]).toBeCloseTo(2 * expected - 0.5, 5);
  });

  it('is left alone where nothing was fitted with it, and missed where it was', () => {
    const [a, b] = [voice(unit(1, 0.2), 3), voice(unit(0.1, 1), 30)];
    expect(logOddsOf([a], [b], parameters, known)).toEqual(logOddsOf([a], [b], parameters, plda));
    expect(() => logOddsOf([a], [b], { ...parameters, cohortTop: 2 }, plda)).toThrow(/cohort/);
  });

  it('lets nobody pass who has no speech alone', () => {
    const [nobody, somebody] = [voice(new Float32Array(0), 0), voice(unit(1, 0))];
    const odds = logOddsOf([nobody], [somebody], { ...parameters, cohortTop: 2 }, known)[0];
    expect(probabilityOf(odds)).toBeLessThan(0.001);
  });
});

it('tells apart how unlike others somebody is who is like none of them: the first of them was the likeliest', () => {
  const steep = { ...parameters, slope: 200, offset: 0 };
  const [stranger, nobody] = [voice(unit(0, 1)), voice(new Float32Array(0), 0)];
  const others = [voice(unit(1, -0.9)), voice(unit(1, -0.3)), voice(unit(1, -0.5)), nobody];
  const odds = logOddsOf([stranger], others, steep, plda);
  expect([...odds].every((value) => value < -12)).toBe(true);
  expect([...odds.keys()].sort((a, b) => odds[b] - odds[a])).toEqual([1, 2, 0, 3]);
  expect([...odds].map(probabilityOf).every(Number.isFinite)).toBe(true);
  for (const exclusive of [true, false])
    expect(matchSpeakers(odds, 1, others.length, { threshold: 0, exclusive })[0].match).toBe(1);
});

it('holds a speaker without any speech alone for nobody', () => {
  const nobody = voice(new Float32Array(0), 0);
  expect(probabilityOf(logOddsOf([nobody], [voice(unit(1, 0))], parameters, plda)[0])).toBeLessThan(0.001);
});
