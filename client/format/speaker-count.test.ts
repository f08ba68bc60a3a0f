import { expect, it } from 'vitest';
import { speakerCountText } from './speaker-count.ts';

it('names the number of speakers, and others that are not unlikely', () => {
  const text = (estimate: number, ...alternatives: [number, number][]) =>
    speakerCountText({
      estimate,
      confidence: 60,
      alternatives: alternatives.map(([count, confidence]) => ({ count, confidence })),
    });
  expect(text(3)).toBe('3 speakers');
  expect(text(1, [2, 31])).toBe('1 speaker, perhaps 2');
  expect(text(4, [3, 24], [5, 16])).toBe('4 speakers, perhaps 3 or 5');
  expect(text(2, [3, 9])).toBe('2 speakers');
});
