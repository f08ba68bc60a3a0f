import { describe, expect, it } from 'vitest';
import { type Claims, claimsOf, hearingOf } from './claims.ts';
import type { ClusterModel } from './clustering/types.ts';
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

const claim = async (
  degrees: readonly number[],
  unheard: readonly number[],
  before: Claims = new Map(),
  isHeard: (index: number) => boolean = () => true,
) => Object.fromEntries(await claimsOf(partsAt(degrees), MODEL, unheard, before, isHeard, noPause));

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

  it('leaves out those to which a claim would not be heard', async () => {
    expect(await claim([180, 170, 160], [3], new Map(), (index) => index > 0)).toEqual({ 1: 3 });
    expect(await claim([180, 170, 160], [3], new Map(), () => false)).toEqual({});
  });
});

describe('hearingOf', () => {
  const settings = { countBias: -0.1, minDurationOnSeconds: 0.1 };
  /** Subsegments of three seconds, in which so many talk from one moment to another. */
  const heard = (talking: readonly (readonly [from: number, to: number, atOnce: number])[]) => {
    const [speech, crosstalk] = [new Uint8Array(150), new Uint8Array(150)];
    for (const [from, to, atOnce] of talking) {
      speech.fill(255 * Math.min(1, atOnce), Math.round(50 * from), Math.round(50 * to));
      crosstalk.fill(255 * Math.max(0, atOnce - 1), Math.round(50 * from), Math.round(50 * to));
    }
    const isHeard = hearingOf({ speech, crosstalk, resolutionSeconds: 0.02 }, settings);
    return [0, 1, 2, 3, 4, 5, 6, 7].filter(isHeard);
  };

  it('is where one person talks, in the half second around a subsegment', () => {
    expect(heard([[0, 3, 1]])).toEqual([0, 1, 2, 3, 4, 5, 6]);
    // The second and a half of a subsegment reaches into speech that its half second has nothing of.
    expect(heard([[0.75, 1.25, 1]])).toEqual([2]);
    expect(heard([])).toEqual([]);
  });

  it('is where that lasts as long as a turn must', () => {
    expect(heard([[0.9, 1.0, 1]])).toEqual([2]);
    expect(heard([[0.9, 0.98, 1]])).toEqual([]);
  });

  it('is neither where nobody rather talks, nor where two rather do', () => {
    expect(heard([[0, 3, 0.58]])).toEqual([]);
    expect(heard([[0, 3, 0.65]])).toHaveLength(7);
    expect(heard([[0, 3, 1.55]])).toHaveLength(7);
    expect(heard([[0, 3, 1.65]])).toEqual([]);
  });
});
