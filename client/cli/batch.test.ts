import { expect, it } from 'vitest';
import { resultNames } from './batch.ts';

it('names the results of several recordings differently: those of two folders overwrote each other', () => {
  expect(resultNames(['a/x.wav', 'b/x.wav', 'b/x.mp3', 'y.flac'])).toEqual(['x.wav', 'x.wav-2', 'x.mp3', 'y']);
});

it('takes # and % in file names as they are, and the path of an address', () => {
  expect(resultNames(['a#1.wav', 'a#2.wav', '100%.wav'])).toEqual(['a#1', 'a#2', '100%']);
  expect(resultNames(['https://example.com/talk.mp3?key=1', 'https://example.com/'])).toEqual(['talk', 'recording']);
});
