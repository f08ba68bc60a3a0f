import { expect, it } from 'vitest';
import { editDistance } from './transcription.ts';

it('counts the fewest insertions, deletions and substitutions of words', () => {
  const distance = (a: string, b: string) => editDistance(a.split(' ').filter(Boolean), b.split(' ').filter(Boolean));
  expect(distance('a b c', 'a b c')).toBe(0);
  expect(distance('a b c', '')).toBe(3);
  expect(distance('', 'a')).toBe(1);
  expect(distance('a b c d', 'a x c')).toBe(2);
  expect(distance('b c', 'a b c d')).toBe(2);
});
