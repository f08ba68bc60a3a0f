import { describe, expect, it } from 'vitest';
import { stretchAt, subsegmentMask, subsegmentsOfWindow, thinned, windowCount, windowsOfShard } from './windows.ts';

const grid = (totalSamples: number) => ({ windowSamples: 160000, stepSamples: 16000, totalSamples });

describe('window grid', () => {
  it.each([
    [0, 0],
    [1, 1],
    [160000, 1],
    [160001, 2],
    [176000, 2],
    [176001, 3],
  ])('%i samples: %i windows', (samples, windows) => {
    expect(windowCount(grid(samples))).toBe(windows);
  });

  it('covers every sample and assigns each window to one shard', () => {
    for (const total of [5, 159999, 480000, 3037000, 4800001]) {
      const all = windowCount(grid(total));
      expect((all - 1) * 16000 + 160000).toBeGreaterThanOrEqual(total);
      let next = 0;
      for (let start = 0; start < total; start += 480000) {
        const { first, count } = windowsOfShard(grid(total), start, Math.min(total, start + 480000));
        if (count > 0) expect(first).toBe(next);
        next += count;
      }
      expect(next).toBe(all);
    }
  });
});

describe('embedding stretches', () => {
  it('lie on a fixed grid', () => {
    expect(stretchAt(2, 160000, 1e6)).toEqual({ fromSample: 320000, toSample: 480000, ownFromSample: 320000 });
    expect(stretchAt(2, 160000, 410000)).toEqual({ fromSample: 320000, toSample: 410000, ownFromSample: 320000 });
  });

  it('are computed on the last ten seconds if the last one is short', () => {
    expect(stretchAt(2, 160000, 330000)).toEqual({ fromSample: 170000, toSample: 330000, ownFromSample: 320000 });
    expect(stretchAt(0, 160000, 5000)).toEqual({ fromSample: 0, toSample: 5000, ownFromSample: 0 });
  });
});

const SECOND = 16000;

describe('subsegmentsOfWindow', () => {
  it.each([
    [1, 61.3],
    [2, 61.3],
    [5, 61.3],
    [1, 3],
    [5, 10],
    [5, 600],
  ])('assigns each subsegment to one window, step %i s, length %f s', (step, seconds) => {
    const grid = { windowSamples: 10 * SECOND, stepSamples: step * SECOND, totalSamples: seconds * SECOND };
    const seen: number[] = [];
    for (let window = 0; window < windowCount(grid); window++) {
      const { from, to } = subsegmentsOfWindow(window, grid);
      for (let index = from; index < to; index++) {
        seen.push(index);
        // The subsegment is centred inside the window.
        expect(index * 0.5).toBeGreaterThanOrEqual(window * step);
        expect(index * 0.5).toBeLessThan(window * step + 10);
      }
    }
    expect(seen).toEqual(Array.from({ length: Math.ceil(seconds / 0.5) }, (_, index) => index));
  });
});

describe('subsegmentMask', () => {
  // 100 frames of 0.1 s from 0 s; speaker 0 until 5 s, speaker 1 from 4 s on.
  const active = new Uint8Array(200);
  for (let frame = 0; frame < 100; frame++) {
    active[frame * 2] = frame < 50 ? 1 : 0;
    active[frame * 2 + 1] = frame >= 40 ? 1 : 0;
  }
  const centre = (frame: number) => (frame + 0.5) * 1600;
  const kept = (index: number) => subsegmentMask(index, active, 2, centre, 4)?.reduce((sum, value) => sum + value, 0);

  it('keeps the single-speaker frames around the centre', () => {
    expect(kept(4)).toBe(16);
    expect(subsegmentMask(4, active, 2, centre, 4)?.indexOf(1)).toBe(12);
    expect(kept(8)).toBe(8);
  });

  it('is undefined with too few frames', () => {
    expect(kept(9)).toBe(6);
    expect(subsegmentMask(9, active, 2, centre, 7)).toBeUndefined();
  });
});

describe('thinned', () => {
  it('keeps the same subsegments for any shards', () => {
    const indices = Int32Array.from([3, 4, 5, 8, 9, 12]);
    const all = { count: 6, dimension: 1, indices, embeddings: Float32Array.from(indices) };
    expect(thinned(all, 1, 0)).toBe(all);
    const oneInFour = thinned(all, 4, 7);
    expect(Array.from(oneInFour.indices)).toEqual([4, 12]);
    expect(Array.from(oneInFour.embeddings)).toEqual([4, 12]);
    const first = { count: 2, dimension: 1, indices: indices.slice(0, 2), embeddings: all.embeddings.slice(0, 2) };
    const rest = { count: 4, dimension: 1, indices: indices.slice(2), embeddings: all.embeddings.slice(2) };
    expect([...thinned(first, 4, 7).indices, ...thinned(rest, 4, 9).indices]).toEqual([4, 12]);
  });

  it('keeps its share of subsegments at regular intervals', () => {
    const indices = Int32Array.from({ length: 400 }, (_, row) => 20 * row + 1);
    const subsegments = { count: 400, dimension: 1, indices, embeddings: new Float32Array(400) };
    for (const every of [4, 5]) expect(thinned(subsegments, every, 0).count).toBe(400 / every);
  });
});
