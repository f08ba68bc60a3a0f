import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { conversation } from '../../test/helpers/local-process.ts';
import { cutFrames } from './mp3-cut.ts';

const bytes = new Uint8Array(readFileSync(conversation));

it('finds all frames of an MP3 file that is read in chunks', () => {
  let [at, seconds, chunks] = [0, 0, 0];
  while (at < bytes.length) {
    const cut = cutFrames(bytes.subarray(at, at + 50_000));
    if (cut.to === cut.from) break;
    expect(cut.from).toBe(0);
    at += cut.to;
    seconds += cut.seconds;
    chunks++;
  }
  expect(chunks).toBeGreaterThan(5);
  expect(at).toBe(bytes.length);
  expect(seconds).toBeCloseTo(56.6, 0);
});

it('skips bytes before the first frame and finds no frame in other data', () => {
  expect(cutFrames(new Uint8Array([0xff, 0xff, 0x12, ...bytes.subarray(0, 2000)])).from).toBe(3);
  expect(cutFrames(new Uint8Array(1000))).toEqual({ from: 1000, to: 1000, seconds: 0 });
});
