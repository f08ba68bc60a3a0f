import { describe, expect, it } from 'vitest';
import { parsePlda, project } from './plda.ts';

const PLDA = { embedding: 'e', mean: [0.1, 0], offset: [0.5, -0.5], transform: [[1, 2]], phi: [3] };

describe('parsePlda', () => {
  it('reads the document that plda.py writes', () => {
    expect(parsePlda(PLDA)).toMatchObject({ embedding: 'e', inputs: 2, outputs: 1 });
  });

  it.each([
    ['a number instead of a document', 7],
    ['a document without an embedder', { ...PLDA, embedding: 1 }],
    ['a short offset', { ...PLDA, offset: [1] }],
    ['a transform of another shape', { ...PLDA, transform: [[1]] }],
    [
      'too many rows',
      {
        ...PLDA,
        transform: [
          [1, 2],
          [3, 4],
        ],
      },
    ],
    ['a NaN', { ...PLDA, phi: [Number.NaN] }],
  ])('rejects %s', (_, json) => {
    expect(() => parsePlda(json)).toThrow(/PLDA/);
  });
});

describe('project', () => {
  it('centres, scales to the root of the dimension, subtracts the offset and transforms', () => {
    const length = Math.hypot(0.6 - 0.1, 0.8);
    const x = (Math.SQRT2 * 0.5) / length - 0.5;
    const y = (Math.SQRT2 * 0.8) / length + 0.5;
    expect(project(parsePlda(PLDA), Float32Array.of(0.6, 0.8), 1)[0]).toBeCloseTo(x + 2 * y, 6);
  });
});
