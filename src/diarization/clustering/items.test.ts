import { describe, expect, it } from 'vitest';
import type { LocalSpeakers } from '../local-speakers.ts';
import { distinctSeconds, meanShift, shifted } from './items.ts';

function items(windows: number[], cleanSeconds: number[], embeddings: number[][]): LocalSpeakers {
  return {
    count: windows.length,
    dimension: embeddings[0].length,
    embeddings: Float32Array.from(embeddings.flat()),
    windows: Int32Array.from(windows),
    locals: new Uint8Array(windows.length),
    cleanSeconds: Float32Array.from(cleanSeconds),
    activeSeconds: Float32Array.from(cleanSeconds),
  };
}

describe('distinctSeconds', () => {
  it('counts a recording of one window in full', () => {
    expect(Array.from(distinctSeconds(items([0], [4], [[1, 0]]), { step: 1, window: 10 }))).toEqual([4]);
  });

  it('shares speech out among the windows that hear it: constant speech adds up to the length', () => {
    const windows = Array.from({ length: 21 }, (_, window) => window);
    const all = items(
      windows,
      windows.map(() => 10),
      windows.map(() => [1, 0]),
    );
    const seconds = distinctSeconds(all, { step: 1, window: 10 });
    expect(seconds.reduce((sum, value) => sum + value, 0)).toBeCloseTo(30, 6);
    expect(seconds[0]).toBeGreaterThan(2 * seconds[10]);
  });

  it('takes a representative as the middle of a long recording', () => {
    expect(distinctSeconds(items([-3], [50], [[1, 0]]), { step: 1, window: 10 })[0]).toBeCloseTo(5, 6);
  });
});

describe('meanShift and shifted', () => {
  it('take a share of the weighted mean and keep unit length', () => {
    const speakers = items(
      [0, 0],
      [3, 1],
      [
        [1, 0],
        [0, 1],
      ],
    );
    const shift = meanShift(speakers, Float64Array.of(3, 1), 0.5);
    expect(Array.from(shift)).toEqual([0.375, 0.125]);
    const { embeddings } = shifted(speakers, shift);
    expect(Math.hypot(embeddings[0], embeddings[1])).toBeCloseTo(1, 6);
    expect(embeddings[0] / embeddings[1]).toBeCloseTo(0.625 / -0.125, 5);
    expect(Array.from(speakers.embeddings)).toEqual([1, 0, 0, 1]);
  });
});
