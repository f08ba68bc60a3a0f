import { describe, expect, it } from 'vitest';
import { Look } from './look.ts';
import { Quiet } from './quiet.ts';

const SHIFT = 320;
const PARAMETERS = { loudShare: 0.9, belowDb: 26, reachSeconds: 0.2, voicedShare: 0.3, voicedReachSeconds: 2.5 };
const unvoiced = { compute: (samples: Float32Array) => new Float32Array(Math.floor(samples.length / 1600)) };
const make = () => new Quiet(PARAMETERS, unvoiced, 0.7);
const SECONDS = 8;

/** A window of 8 s in which the segmentation takes everything for speech. */
function everybody(startSample: number): Look {
  const frames = (SECONDS * 16000) / SHIFT;
  const ones = new Float32Array(frames).fill(1);
  return new Look(Math.round(startSample / SHIFT), frames, 1, ones, ones, new Uint8Array(frames).fill(1));
}

/** Loud for `loudSeconds`, then 50 dB quieter. */
function window(loudSeconds: number): Float32Array {
  const up = (i: number) => (i < loudSeconds * 16000 ? 0.1 : 0.0003);
  return Float32Array.from({ length: SECONDS * 16000 }, (_, i) => (i % 2 === 0 ? up(i) : -up(i)));
}

describe('Quiet', () => {
  it('silences what is far below the speech, once there was enough of that', () => {
    const quiet = make();
    const early = quiet.silence(everybody(-96_000), window(SECONDS), -96_000, SHIFT);
    expect(early.isAnybody(10)).toBe(true);
    quiet.silence(everybody(0), window(SECONDS), 0, SHIFT);
    const late = quiet.silence(everybody(32_000), window(6), 32_000, SHIFT);
    expect(late.isAnybody((32_000 + 5 * 16_000) / SHIFT)).toBe(true);
    expect(late.isAnybody((32_000 + 7 * 16_000) / SHIFT)).toBe(false);
  });

  it('counts every tenth of a second once, however far apart the looks are and wherever they end', () => {
    const samples = Float32Array.from({ length: 20 * 16_000 }, (_, i) => 0.1 * Math.sin(i * i));
    const counted = (ends: readonly number[]) => {
      const quiet = make();
      for (const end of ends) {
        const start = end - SECONDS * 16_000;
        const seen = Float32Array.from({ length: SECONDS * 16_000 }, (_, i) => samples[start + i] ?? 0);
        quiet.silence(everybody(start), seen, start, SHIFT);
      }
      return Array.from(quiet.save().histogram);
    };
    const everySecond = Array.from({ length: 20 }, (_, look) => (look + 1) * 16_000);
    const everyQuarter = Array.from({ length: 80 }, (_, look) => (look + 1) * 4000);
    expect(counted(everySecond).reduce((sum, count) => sum + count)).toBe(200);
    expect(counted(everyQuarter)).toEqual(counted(everySecond));
    expect(counted([...everySecond, 20 * 16_000])).toEqual(counted(everySecond));
  });

  it('goes on from where it was', () => {
    const first = make();
    first.silence(everybody(0), window(SECONDS), 0, SHIFT);
    const second = make();
    second.restore(first.save());
    const look = (quiet: Quiet) => quiet.silence(everybody(16_000), window(3), 16_000, SHIFT).active;
    expect(look(second)).toEqual(look(first));
    expect(look(second)).toContain(0);
  });
});
