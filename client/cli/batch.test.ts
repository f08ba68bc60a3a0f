import { expect, it } from 'vitest';
import { resultNames } from './batch.ts';

it('names results differently when files have the same name', () => {
  expect(resultNames(['a/x.wav', 'b/x.wav', 'b/x.mp3', 'y.flac'])).toEqual(['x.wav', 'x.wav-2', 'x.mp3', 'y']);
});

it('keeps # and % in file names and uses the path of an address', () => {
  expect(resultNames(['a#1.wav', 'a#2.wav', '100%.wav'])).toEqual(['a#1', 'a#2', '100%']);
  expect(resultNames(['https://example.com/talk.mp3?key=1', 'https://example.com/'])).toEqual(['talk', 'recording']);
});
