import { describe, expect, it } from 'vitest';
import { mergeWindows, SegmentedWindow } from './segmented-window.ts';

const FRAMES = 200;

/** A window whose local speakers talk in ranges of the stream's frames, with a probability each. */
function windowAt(
  firstFrame: number,
  ...talk: [local: number, from: number, to: number, probability: number][]
): SegmentedWindow {
  const activations = new Float32Array(FRAMES * 3);
  const expected = new Float32Array(FRAMES);
  for (const [local, from, to, probability] of talk) {
    for (let frame = Math.max(from, firstFrame); frame < Math.min(to, firstFrame + FRAMES); frame++) {
      activations[(frame - firstFrame) * 3 + local] = probability;
      expected[frame - firstFrame] += probability;
    }
  }
  const active = Uint8Array.from(activations, (value) => (value > 0.5 ? 1 : 0));
  return new SegmentedWindow(firstFrame, FRAMES, 3, activations, expected, active);
}

const activeLocals = (window: SegmentedWindow, frame: number) =>
  [0, 1, 2].filter((local) => window.isActive(local, frame));

describe('mergeWindows', () => {
  it('returns the window itself without earlier ones', () => {
    const now = windowAt(0, [0, 10, 50, 1]);
    expect(mergeWindows(now, [])).toBe(now);
  });

  it('matches the local speakers of earlier windows in any order', () => {
    const now = windowAt(50, [0, 60, 120, 0.9], [1, 120, 200, 0.9]);
    const before = windowAt(0, [2, 60, 120, 0.9], [0, 120, 190, 0.9]);
    const both = mergeWindows(now, [before]);
    expect(activeLocals(both, 80)).toEqual([0]);
    expect(activeLocals(both, 150)).toEqual([1]);
  });

  it('decides by the mean of the windows', () => {
    const now = windowAt(20, [0, 30, 100, 0.9], [0, 100, 110, 0.4]);
    const before = windowAt(10, [0, 30, 110, 0.8]);
    const both = mergeWindows(now, [before]);
    expect(both.activation(0, 105)).toBeCloseTo(0.6, 5);
    expect(activeLocals(both, 105)).toEqual([0]);
    expect(activeLocals(now, 105)).toEqual([]);
  });

  it('gives the last frames of a window a low weight, and frames outside it none', () => {
    const now = windowAt(50, [0, 60, 250, 0.9]);
    const before = windowAt(0, [0, 60, 195, 0.9]);
    const both = mergeWindows(now, [before]);
    expect(both.activation(0, 198)).toBeGreaterThan(0.8);
    expect(both.activation(0, 240)).toBeCloseTo(0.9, 5);
    expect([both.firstFrame, both.frames]).toEqual([50, FRAMES]);
  });
});
