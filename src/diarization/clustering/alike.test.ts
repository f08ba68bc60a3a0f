import { expect, it } from 'vitest';
import { joinAlike, joinDown } from './alike.ts';

/** Somebody who sounds like an angle of a circle, after so much speech, of which so much goes in one direction. */
function speaker(degrees: number, weight: number, coherence = 1) {
  const angle = (degrees * Math.PI) / 180;
  const length = coherence * weight;
  return { sum: Float64Array.of(length * Math.cos(angle), length * Math.sin(angle)), weight };
}

const SIXTY_DEGREES = {
  mergeSimilarity: 0.5,
  mergeItemSimilarity: 0.3,
  sameItemSimilarity: 2,
  sameItemSimilarityGrowth: 0,
};

it('joins who is alike, the most alike first, and looks again at what comes of it', () => {
  const found = joinAlike([speaker(65, 9), speaker(0, 5), speaker(20, 5)], SIXTY_DEGREES, 1);
  expect(found.map(({ weight }) => weight)).toEqual([19]);
  const apart = joinAlike([speaker(75, 9), speaker(0, 5), speaker(20, 5)], SIXTY_DEGREES, 1);
  expect(apart.map(({ weight }) => weight)).toEqual([10, 9]);
});

it('leaves as many as are wanted', () => {
  const three = [speaker(0, 1), speaker(1, 3), speaker(2, 2)];
  expect(joinAlike(three, SIXTY_DEGREES, 2)).toHaveLength(2);
  expect(joinAlike(three, SIXTY_DEGREES, 5).map(({ weight }) => weight)).toEqual([3, 2, 1]);
  expect(joinAlike(three, SIXTY_DEGREES, 0)).toHaveLength(1);
});

it('changes nothing of who is not alike', () => {
  const two = [speaker(0, 2), speaker(90, 1)];
  expect(joinAlike(two, SIXTY_DEGREES, 1)).toEqual(two);
  expect(joinAlike([], SIXTY_DEGREES, 1)).toEqual([]);
});

it('does not take a mixture of people for one of them', () => {
  expect(joinAlike([speaker(0, 2, 0.7), speaker(20, 1, 0.7)], SIXTY_DEGREES, 1)).toHaveLength(1);
  expect(joinAlike([speaker(0, 2, 0.5), speaker(20, 1, 0.5)], SIXTY_DEGREES, 1)).toHaveLength(2);
});

it('takes the only two for one person at a likeness that would not do among many: monologues were found to be dialogues', () => {
  const byItems = {
    mergeSimilarity: 2,
    mergeItemSimilarity: 2,
    sameItemSimilarity: 0.12,
    sameItemSimilarityGrowth: 0.088,
  };
  // 0.2 of a pair of embeddings: with two speakers 0.18 is enough, with five 0.26 is asked for.
  const two = [speaker(0, 2, 0.5), speaker(37, 1, 0.5)];
  expect(joinAlike(two, byItems, 1)).toHaveLength(1);
  const others = [speaker(120, 1, 0.5), speaker(180, 1, 0.5), speaker(260, 1, 0.5)];
  expect(joinAlike([...two, ...others], byItems, 1)).toHaveLength(5);
});

it('joins down a fragment before two who talk long, although those are closer', () => {
  const found = joinDown([speaker(0, 100), speaker(40, 100), speaker(130, 1)], 2);
  expect(found.map(({ weight }) => weight)).toEqual([101, 100]);
  expect(joinDown([speaker(0, 1), speaker(90, 2)], 2).map(({ weight }) => weight)).toEqual([2, 1]);
  expect(joinDown([speaker(0, 1), speaker(90, 2)], 0)).toHaveLength(1);
});
