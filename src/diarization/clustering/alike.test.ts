import { expect, it } from 'vitest';
import { joinAlike } from './alike.ts';

/** Somebody who sounds like an angle of a circle, after so much speech. */
function speaker(degrees: number, weight: number) {
  const angle = (degrees * Math.PI) / 180;
  return { sum: Float64Array.of(weight * Math.cos(angle), weight * Math.sin(angle)), weight };
}

const SIXTY_DEGREES = 0.5;

it('joins who is alike, the most alike first, and looks again at what comes of it', () => {
  const found = joinAlike([speaker(65, 9), speaker(0, 5), speaker(20, 5)], SIXTY_DEGREES - 0.05, 1);
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
