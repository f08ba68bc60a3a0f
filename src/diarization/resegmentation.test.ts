import { describe, expect, it } from 'vitest';
import type { ClusterModel } from './clustering/cluster.ts';
import type { Parts } from './part.ts';
import { type ForcedSpeakers, forceSpeakers, Resegmenter, turnYield } from './resegmentation.ts';

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
  subsegments: readonly (readonly [index: number, direction: number[]])[],
  forced?: ForcedSpeakers,
) {
  const parameters = { weight, temperature: 0.1 };
  const made = new Resegmenter(MODEL, parameters, (frame) => frame * 1600, forced);
  made.add({
    count: subsegments.length,
    dimension: 2,
    indices: Int32Array.from(subsegments, ([index]) => index),
    embeddings: Float32Array.from(subsegments.flatMap(([, direction]) => direction)),
  });
  return made;
}

function blended(made: Resegmenter, frame: number, expected: number, ...values: number[]): number[] {
  const changed = Float32Array.from(values);
  made.blend(frame, expected, changed, changed.slice());
  return Array.from(changed, (value) => Math.round(1000 * value) / 1000);
}

describe('Resegmenter', () => {
  it('moves a frame to the most similar speaker of its subsegments, by their weight', () => {
    // Frame 5 is the centre of subsegment 1.
    expect(blended(resegmenter(1, [[1, SECOND]]), 5, 0.5, 0.8, 0)).toEqual([0, 0.8]);
    expect(blended(resegmenter(0.5, [[1, SECOND]]), 5, 0.5, 0.8, 0)).toEqual([0.4, 0.4]);
    expect(blended(resegmenter(0, [[1, SECOND]]), 5, 0.5, 0.8, 0)).toEqual([0.8, 0]);
  });

  it('interpolates between the two subsegments around a frame, or uses the only one', () => {
    const both = resegmenter(1, [
      [1, FIRST],
      [2, SECOND],
    ]);
    expect(blended(both, 6, 0.5, 1, 0)).toEqual([0.8, 0.2]);
    expect(blended(both, 9, 0.5, 1, 0)).toEqual([0.2, 0.8]);
    expect(blended(both, 12, 0.5, 1, 0)).toEqual([0, 1]);
    expect(blended(both, 40, 0.5, 1, 0)).toEqual([1, 0]);
  });

  it('lowers the weight as the expected number of speakers rises', () => {
    expect(blended(resegmenter(1, [[1, SECOND]]), 5, 1, 0.8, 0)).toEqual([0.4, 0.4]);
  });

  it('leaves frames with two speakers unchanged, and never adds speech', () => {
    const made = resegmenter(1, [[1, SECOND]]);
    expect(blended(made, 5, 1.6, 0.9, 0.7)).toEqual([0.9, 0.7]);
    expect(blended(made, 5, 0, 0.1, 0)).toEqual([0, 0.1]);
  });

  it('swaps the speaker of a forced subsegment with the most active speaker', () => {
    const made = () => resegmenter(1, [[1, FIRST]], new Map([[1, 1]]));
    expect([3, 5, 7].map((frame) => blended(made(), frame, 1, 0.8, 0.2))).toEqual([
      [0.1, 0.9],
      [0.1, 0.9],
      [0.1, 0.9],
    ]);
    // Frame 8 is closer to the next subsegment, which is not forced.
    expect(blended(made(), 8, 1, 0.8, 0.2)).toEqual([0.9, 0.1]);
  });
});

const noPause = async () => undefined;

/** Four speakers as directions in a plane, the first two close to each other. */
const FOUR_SPEAKERS: ClusterModel = {
  clusters: 4,
  dimension: 2,
  shift: new Float32Array(2),
  centroids: Float32Array.from([1, 0, 0.98, 0.199, 0, 1, -1, 0]),
  temperature: 0.1,
};

/** Subsegments in the given directions, in degrees, three to a part. */
function partsAt(degrees: readonly number[]): Parts {
  const unused = () => Promise.reject(new Error('no frames are needed'));
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

const force = async (
  degrees: readonly number[],
  missing: readonly number[],
  earlier: ForcedSpeakers = new Map(),
  yieldsTurn: (index: number) => boolean = () => true,
) => Object.fromEntries(await forceSpeakers(partsAt(degrees), FOUR_SPEAKERS, missing, earlier, yieldsTurn, noPause));

describe('forceSpeakers', () => {
  it('chooses the subsegment with the largest margin, not with the largest similarity', async () => {
    // 11.5° is speaker 1's own direction; 20° is further from it, and still further from speaker 0.
    expect(await force([0, 11.5, 20, 90, 180], [1])).toEqual({ 2: 1 });
  });

  it('gives each subsegment to one speaker only', async () => {
    expect(await force([170, 5, 90, 4], [0, 1])).toEqual({ 1: 1, 3: 0 });
    expect(await force([5], [0, 1])).toEqual({ 0: 0 });
  });

  it('keeps subsegments that are forced already', async () => {
    expect(await force([180, 175, 0], [3], new Map([[0, 2]]))).toEqual({ 0: 2, 1: 3 });
  });

  it('returns none without subsegments', async () => {
    expect(await force([], [0])).toEqual({});
  });

  it('leaves out subsegments that would give no turn', async () => {
    expect(await force([180, 170, 160], [3], new Map(), (index) => index > 0)).toEqual({ 1: 3 });
    expect(await force([180, 170, 160], [3], new Map(), () => false)).toEqual({});
  });
});

describe('turnYield', () => {
  const settings = { countBias: -0.1, minDurationOnSeconds: 0.1 };
  /** Indices, in three seconds, that yield a turn. @param talking spans in seconds with the speakers at once */
  const indicesWithTurn = (talking: readonly (readonly [from: number, to: number, atOnce: number])[]) => {
    const [speech, crosstalk] = [new Uint8Array(150), new Uint8Array(150)];
    for (const [from, to, atOnce] of talking) {
      speech.fill(255 * Math.min(1, atOnce), Math.round(50 * from), Math.round(50 * to));
      crosstalk.fill(255 * Math.max(0, atOnce - 1), Math.round(50 * from), Math.round(50 * to));
    }
    const yieldsTurn = turnYield({ speech, crosstalk, resolutionSeconds: 0.02 }, settings);
    return [0, 1, 2, 3, 4, 5, 6, 7].filter(yieldsTurn);
  };

  it('is true if one person talks in the half second around a subsegment', () => {
    expect(indicesWithTurn([[0, 3, 1]])).toEqual([0, 1, 2, 3, 4, 5, 6]);
    // The 1.5 s of subsegment 1 touch this speech; its half second does not.
    expect(indicesWithTurn([[0.75, 1.25, 1]])).toEqual([2]);
    expect(indicesWithTurn([])).toEqual([]);
  });

  it('is true only if that lasts for the minimum duration of a turn', () => {
    expect(indicesWithTurn([[0.9, 1.0, 1]])).toEqual([2]);
    expect(indicesWithTurn([[0.9, 0.98, 1]])).toEqual([]);
  });

  it('is false in frames with mostly no speaker or mostly two', () => {
    expect(indicesWithTurn([[0, 3, 0.58]])).toEqual([]);
    expect(indicesWithTurn([[0, 3, 0.65]])).toHaveLength(7);
    expect(indicesWithTurn([[0, 3, 1.55]])).toHaveLength(7);
    expect(indicesWithTurn([[0, 3, 1.65]])).toEqual([]);
  });
});
