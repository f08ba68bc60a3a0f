import { describe, expect, it } from 'vitest';
import { loudestDb, SILENCE_DB } from './levels.ts';

const TENTH_SAMPLES = 1600;

/** Tenths of a second of these levels; the sign changes from sample to sample. */
function steps(...decibels: number[]): Float32Array {
  return Float32Array.from({ length: decibels.length * TENTH_SAMPLES }, (_, at) => {
    const peak = 10 ** (decibels[Math.floor(at / TENTH_SAMPLES)]! / 20);
    return at % 2 === 0 ? peak : -peak;
  });
}

describe('loudestDb', () => {
  it('is the level of the loudest tenth of a second; the last one may be shorter', () => {
    expect(loudestDb(steps(-40, -20, -60))).toBe(-20);
    expect(loudestDb(steps(-40, -20).subarray(0, 2400))).toBe(-20);
  });

  it('is that of silence for zeros and for no samples', () => {
    expect([loudestDb(new Float32Array(4800)), loudestDb(new Float32Array(0))]).toEqual([SILENCE_DB, SILENCE_DB]);
  });

  it('ignores an offset, which is all that is left of two channels that cancel each other', () => {
    expect(loudestDb(steps(-60, -50).map((value) => value + 0.06))).toBe(-50);
    expect(loudestDb(new Float32Array(4800).fill(0.06))).toBe(SILENCE_DB);
  });
});
