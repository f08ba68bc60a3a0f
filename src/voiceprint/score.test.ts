import { describe, expect, it } from 'vitest';
import type { Plda, SpeakerVoice } from '../diarization/index.ts';
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
    // Observations: min(3, 1 + 10 / 5) = 3 and 1. Densities of (x, y) by 2 x 2 covariances, dimension by dimension.
    let expected = 0;
    for (let d = 0; d < 2; d++) {
      const [x, y] = [a.embedding[d]! * Math.SQRT2, b.embedding[d]! * Math.SQRT2];
      const between = plda.phi[d]!;
      const density = (c: number) => {
        const [p, q] = [between + 1 / 3, between + 1];
        const determinant = p * q - c * c;
        return -0.5 * (Math.log(determinant) + (q * x * x - 2 * c * x * y + p * y * y) / determinant);
      };
      expected += (density(between) - density(0)) / 2;
    }
    expect(logOddsOf([a], [b], parameters, plda)[0]).toBeCloseTo(2 * expected - 0.5, 5);
  });

  it('does not depend on which of the two was enrolled', () => {
    const [a, b] = [voice(unit(1, 0.2), 3), voice(unit(0.1, 1), 30)];
    expect(logOddsOf([a], [b], parameters, plda)[0]).toBeCloseTo(logOddsOf([b], [a], parameters, plda)[0]!, 9);
  });

  it('is surer with more speech', () => {
    const scores = [0, 5, 10].map((seconds) => {
      const speech = voice(unit(1, 0.1), seconds);
      return logOddsOf([speech], [speech], parameters, plda)[0]!;
    });
    expect(scores[1]).toBeGreaterThan(scores[0]!);
    expect(scores[2]).toBeGreaterThan(scores[1]!);
  });
});

it('holds a speaker without any speech alone for nobody', () => {
  const nobody = voice(new Float32Array(0), 0);
  expect(probabilityOf(logOddsOf([nobody], [voice(unit(1, 0))], parameters, plda)[0]!)).toBeLessThan(0.001);
});
