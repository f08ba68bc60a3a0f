import { expect, it } from 'vitest';
import { resultNames } from './batch.ts';

it('gives results of files with the same name different names', () => {
  expect(resultNames(['a/x.wav', 'b/x.wav', 'b/x.mp3', 'y.flac'])).toEqual(['x.wav', 'x.wav-2', 'x.mp3', 'y']);
});

it('keeps # and % of file names, and uses the path of an address', () => {
  expect(resultNames(['a#1.wav', 'a#2.wav', '100%.wav'])).toEqual(['a#1', 'a#2', '100%']);
  expect(resultNames(['https://example.com/talk.mp3?key=1', 'https://example.com/'])).toEqual(['talk', 'recording']);
});
