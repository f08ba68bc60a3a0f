import { expect, it } from 'vitest';
import { bestRound } from './best-round.ts';

/** Rounds whose settings are their number. */
async function search(scores: readonly number[], wanted: number) {
  const runs: number[] = [];
  const dropped: number[] = [];
  const result = await bestRound(0, {
    wanted,
    maxRounds: scores.length,
    run: async (settings) => {
      runs.push(settings);
      return scores[settings];
    },
    scoreOf: (score) => score,
    next: async (settings) => settings + 1,
    drop: (score) => void dropped.push(score),
  });
  // Every result but the last is given back, in its order.
  expect(dropped).toEqual(runs.slice(0, -1).map((settings) => scores[settings]));
  return { result, runs };
}

it('ends with the first round that is enough', async () => {
  expect(await search([1, 3, 5, 4], 5)).toEqual({ result: 5, runs: [0, 1, 2] });
  expect(await search([2], 1)).toEqual({ result: 2, runs: [0] });
});

it('gives the best round where none is enough: 26 of 30 speakers were delivered where 27 had been heard', async () => {
  expect(await search([18, 18, 16, 15, 24, 27, 26, 26], 30)).toEqual({ result: 27, runs: [0, 1, 2, 3, 4, 5, 6, 7, 5] });
});

it('runs nothing again where the last round is as good as any', async () => {
  expect(await search([18, 27, 27], 30)).toEqual({ result: 27, runs: [0, 1, 2] });
});
