import { describe, expect, it } from 'vitest';
import { settingsOf } from '../parameters.ts';
import { subsegmentShareOf } from './weighted.ts';

describe('the share of the evidence that lies in the subsegments', () => {
  const shares = {
    briefSubsegmentShare: 0.9,
    briefSpeechSeconds: 20,
    longSubsegmentShare: 0.5,
    longSpeechSeconds: 320,
  };

  it.each([
    [0.01, 0.9],
    [20, 0.9],
    [40, 0.8],
    [80, 0.7],
    [160, 0.6],
    [320, 0.5],
    [86_400, 0.5],
  ])('of %f s of speech is %f: it falls with the logarithm, and not beyond either end', (speechSeconds, share) => {
    expect(subsegmentShareOf(speechSeconds, shares)).toBeCloseTo(share, 12);
  });

  it('falls, in the settings of jobs, so that a long recording is not cut by what is said', () => {
    const { bayesian } = settingsOf('precision-2').clustering;
    expect(subsegmentShareOf(600, bayesian)).toBeLessThan(subsegmentShareOf(30, bayesian));
  });
});
