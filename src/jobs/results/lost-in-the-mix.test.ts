import { expect, it } from 'vitest';
import { lostInTheMix } from './lost-in-the-mix.ts';

it('channels that cancel each other out are hinted at, and quiet recordings are left alone', () => {
  const hint = /its 2 channels are very quiet.*upside down.*send one of them alone\.$/;
  expect(lostInTheMix(2, -127, 'nothing found')).toMatch(hint);
  // What Vorbis leaves of two channels that cancel each other out.
  expect(lostInTheMix(2, -36, 'nothing found')).toMatch(hint);
  expect(lostInTheMix(2, -30, 'nothing found')).toBeUndefined();
  // What AAC leaves, of which the segmentation takes a second for speech.
  expect(lostInTheMix(2, -75, 'something found')).toMatch(hint);
  expect(lostInTheMix(2, -60, 'something found')).toBeUndefined();
  expect(lostInTheMix(1, -127, 'nothing found')).toBeUndefined();
});
