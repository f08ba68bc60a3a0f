import { describe, expect, it } from 'vitest';
import type { Claims } from './claims.ts';
import { Resegmenter } from './resegmentation.ts';

/** Two speakers along the axes; frames of 0.1 s. */
const MODEL = {
  clusters: 2,
  dimension: 2,
  shift: Float32Array.of(0, 0),
  centroids: Float32Array.of(1, 0, 0, 1),
  temperature: 0.15,
};
const FIRST = [1, 0];
const SECOND = [0, 1];

function resegmenter(
  weight: number,
  pieces: readonly (readonly [index: number, direction: number[]])[],
  claims?: Claims,
) {
  const parameters = { weight, temperature: 0.1 };
  const made = new Resegmenter(MODEL, parameters, (frame) => frame * 1600, claims);
  made.add({
    count: pieces.length,
    dimension: 2,
    indices: Int32Array.from(pieces, ([index]) => index),
    embeddings: Float32Array.from(pieces.flatMap(([, direction]) => direction)),
  });
  return made;
}

function blended(made: Resegmenter, frame: number, expected: number, ...values: number[]): number[] {
  const changed = Float32Array.from(values);
  made.blend(frame, expected, changed, changed.slice());
  return Array.from(changed, (value) => Math.round(1000 * value) / 1000);
}

describe('Resegmenter', () => {
  it('gives a frame to whom its subsegments sound like, as far as they have a say', () => {
    // Frame 5 is the centre of subsegment 1.
    expect(blended(resegmenter(1, [[1, SECOND]]), 5, 0.5, 0.8, 0)).toEqual([0, 0.8]);
    expect(blended(resegmenter(0.5, [[1, SECOND]]), 5, 0.5, 0.8, 0)).toEqual([0.4, 0.4]);
    expect(blended(resegmenter(0, [[1, SECOND]]), 5, 0.5, 0.8, 0)).toEqual([0.8, 0]);
  });

  it('interpolates between the two around a frame, and takes one alone where the other is missing', () => {
    const both = resegmenter(1, [
      [1, FIRST],
      [2, SECOND],
    ]);
    expect(blended(both, 6, 0.5, 1, 0)).toEqual([0.8, 0.2]);
    expect(blended(both, 9, 0.5, 1, 0)).toEqual([0.2, 0.8]);
    expect(blended(both, 12, 0.5, 1, 0)).toEqual([0, 1]);
    expect(blended(both, 40, 0.5, 1, 0)).toEqual([1, 0]);
  });

  it('has less to say the likelier it is that more than one person speaks', () => {
    expect(blended(resegmenter(1, [[1, SECOND]]), 5, 1, 0.8, 0)).toEqual([0.4, 0.4]);
  });

  it('leaves frames alone in which two people speak, and never adds speech', () => {
    const made = resegmenter(1, [[1, SECOND]]);
    expect(blended(made, 5, 1.6, 0.9, 0.7)).toEqual([0.9, 0.7]);
    expect(blended(made, 5, 0, 0.1, 0)).toEqual([0, 0.1]);
  });

  it('lets a claimant change places with whoever is most active around the claimed subsegment', () => {
    const made = () => resegmenter(1, [[1, FIRST]], new Map([[1, 1]]));
    expect([3, 5, 7].map((frame) => blended(made(), frame, 1, 0.8, 0.2))).toEqual([
      [0.1, 0.9],
      [0.1, 0.9],
      [0.1, 0.9],
    ]);
    // Frame 8 is closer to the next subsegment, which nobody claims.
    expect(blended(made(), 8, 1, 0.8, 0.2)).toEqual([0.9, 0.1]);
  });
});
