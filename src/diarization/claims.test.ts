import { describe, expect, it } from 'vitest';
import { type Claims, claimsOf } from './claims.ts';
import type { ClusterModel } from './clustering/strategy.ts';
import type { Parts } from './parts.ts';

const noPause = async () => undefined;

/** Four speakers on the axes of a plane, the first two of them close to each other. */
const MODEL: ClusterModel = {
  clusters: 4,
  dimension: 2,
  shift: new Float32Array(2),
  centroids: Float32Array.from([1, 0, 0.98, 0.199, 0, 1, -1, 0]),
  temperature: 0.1,
};

/** Subsegments in the given directions, in degrees, three to a part. */
function partsAt(degrees: readonly number[]): Parts {
  const unused = () => Promise.reject(new Error('claims need no frames'));
  return {
    count: Math.ceil(degrees.length / 3),
    factsOf: unused as never,
    countsOf: unused as never,
    readPart: unused,
    async readEmbeddings(part) {
      const angles = degrees.slice(3 * part, 3 * part + 3).map((angle) => (angle * Math.PI) / 180);
      const embeddings = Float32Array.from(angles.flatMap((angle) => [Math.cos(angle), Math.sin(angle)]));
      const indices = Int32Array.from(angles, (_, row) => 3 * part + row);
      return {
        speakers: { embeddings: new Float32Array(0) },
        subsegments: { count: angles.length, dimension: 2, indices, embeddings },
      } as unknown as Awaited<ReturnType<Parts['readEmbeddings']>>;
    },
  };
}

const claim = async (degrees: readonly number[], unheard: readonly number[], before: Claims = new Map()) =>
  Object.fromEntries(await claimsOf(partsAt(degrees), MODEL, unheard, before, noPause));

describe('claimsOf', () => {
  it('takes what sounds most like the speaker beside all others, not what sounds most like them alone', async () => {
    // 11.5° is speaker 1's own direction; 20° is further from it, and still further from speaker 0.
    expect(await claim([0, 11.5, 20, 90, 180], [1])).toEqual({ 2: 1 });
  });

  it('gives no subsegment away twice', async () => {
    expect(await claim([170, 5, 90, 4], [0, 1])).toEqual({ 1: 1, 3: 0 });
    expect(await claim([5], [0, 1])).toEqual({ 0: 0 });
  });

  it('leaves earlier claims as they are', async () => {
    expect(await claim([180, 175, 0], [3], new Map([[0, 2]]))).toEqual({ 0: 2, 1: 3 });
  });

  it('finds none where there are no subsegments', async () => {
    expect(await claim([], [0])).toEqual({});
  });
});
