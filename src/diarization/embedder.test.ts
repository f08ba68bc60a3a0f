import { expect, it } from 'vitest';
import { random } from '../../test/helpers/audio.ts';
import { BANDS, normalisedTail, raiseFloor, subtractMean } from './embedder.ts';

/** Frames of one level each, the first band a nat above. */
const framesOf = (levels: readonly number[]) =>
  Float32Array.from(
    levels.flatMap((level) => Array.from({ length: BANDS }, (_, band) => (band === 0 ? level + 1 : level))),
  );

it('raises silence to a floor below the loud frames and leaves speech alone', () => {
  const feats = framesOf([...new Array(60).fill(5), ...new Array(40).fill(-15.9)]);
  raiseFloor(feats, 10);
  expect(feats[0]).toBe(6);
  expect(feats[1]).toBe(5);
  // The loudest band of a loud frame is 6.
  expect(feats.at(-1)).toBe(-4);
});

it('makes speech look the same whether its pauses are quiet or digitally silent', () => {
  const quiet = framesOf([...new Array(50).fill(5), ...new Array(50).fill(-6)]);
  const silent = framesOf([...new Array(50).fill(5), ...new Array(50).fill(-15.9)]);
  for (const feats of [quiet, silent]) {
    raiseFloor(feats, 10);
    subtractMean(feats);
  }
  expect(silent).toEqual(quiet);
});

it('takes the mean of each band away', () => {
  const feats = framesOf([1, 3]);
  subtractMean(feats);
  expect(feats[1]).toBe(-1);
  expect(feats[BANDS]).toBe(1);
});

it('lets empty features be', () => {
  const empty = new Float32Array(0);
  expect(() => raiseFloor(empty, 10)).not.toThrow();
  expect(() => subtractMean(empty)).not.toThrow();
});

it.each([10, 2.3, undefined])('makes the last frames as if all had been made, floor %s', (depthNats) => {
  const next = random(4);
  const feats = Float32Array.from({ length: 150 * BANDS }, () => 20 * next() - 15);
  const whole = feats.slice();
  if (depthNats !== undefined) raiseFloor(whole, depthNats);
  subtractMean(whole);
  expect(normalisedTail(feats, 110, depthNats)).toEqual(whole.slice(110 * BANDS));
  expect(normalisedTail(feats, 0, depthNats)).toEqual(whole);
});
