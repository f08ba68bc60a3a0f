import { expect, it } from 'vitest';
import { random } from '../../test/helpers/audio.ts';
import { BANDS, normalisedTail, raiseFloor, subtractMean } from './embedder.ts';

/** Frames of one level each; the first band is a nat higher. */
const framesOf = (levels: readonly number[]) =>
  Float32Array.from(
    levels.flatMap((level) => Array.from({ length: BANDS }, (_, band) => (band === 0 ? level + 1 : level))),
  );

it('raises silence to a floor below the loud frames and leaves speech unchanged', () => {
  const feats = framesOf([...new Array(60).fill(5), ...new Array(40).fill(-15.9)]);
  raiseFloor(feats, 10);
  expect(feats[0]).toBe(6);
  expect(feats[1]).toBe(5);
  // The loudest band of a loud frame is 6.
  expect(feats.at(-1)).toBe(-4);
});

it('gives speech equal features with quiet and with digitally silent pauses', () => {
  const quiet = framesOf([...new Array(50).fill(5), ...new Array(50).fill(-6)]);
  const silent = framesOf([...new Array(50).fill(5), ...new Array(50).fill(-15.9)]);
  for (const feats of [quiet, silent]) {
    raiseFloor(feats, 10);
    subtractMean(feats);
  }
  expect(silent).toEqual(quiet);
});

it('subtracts the mean of each band', () => {
  const feats = framesOf([1, 3]);
  subtractMean(feats);
  expect(feats[1]).toBe(-1);
  expect(feats[BANDS]).toBe(1);
});

it('accepts empty features', () => {
  const empty = new Float32Array(0);
  expect(() => raiseFloor(empty, 10)).not.toThrow();
  expect(() => subtractMean(empty)).not.toThrow();
});

it.each([10, 2.3, undefined])('normalises the last frames as part of all frames, floor %s', (depthNats) => {
  const next = random(4);
  const feats = Float32Array.from({ length: 150 * BANDS }, () => 20 * next() - 15);
  const allFrames = feats.slice();
  if (depthNats !== undefined) raiseFloor(allFrames, depthNats);
  subtractMean(allFrames);
  expect(normalisedTail(feats, 110, depthNats)).toEqual(allFrames.slice(110 * BANDS));
  expect(normalisedTail(feats, 0, depthNats)).toEqual(allFrames);
});
