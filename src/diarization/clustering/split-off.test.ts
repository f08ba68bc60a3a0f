import { describe, expect, it } from 'vitest';
import type { LocalSpeakers } from '../local-speakers.ts';
import { normalise } from '../vectors.ts';
import type { SpeakerSum } from './alike.ts';
import { cosineDistances } from './distances.ts';
import { linkage } from './linkage.ts';
import { splitOff } from './split-off.ts';
import type { Weighted } from './weighted.ts';

const DIMENSION = 4;
const PARAMETERS = { wantedInitialThreshold: 0.05, wantedMinSpeakerSeconds: 0.3, splitSimilarity: 0.4, splitSlope: 10 };
const pause = async (): Promise<void> => undefined;

/** Items in one plane: angle in degrees and seconds of speech. */
function items(rows: readonly (readonly [degrees: number, seconds: number])[]): Weighted {
  const embeddings = new Float32Array(rows.length * DIMENSION);
  rows.forEach(([degrees], row) => {
    const angle = (degrees * Math.PI) / 180;
    embeddings.set([Math.cos(angle), Math.sin(angle)], row * DIMENSION);
    normalise(embeddings, row * DIMENSION, DIMENSION);
  });
  const seconds = Float64Array.from(rows, ([, value]) => value);
  const speakers: LocalSpeakers = {
    count: rows.length,
    dimension: DIMENSION,
    embeddings,
    windows: Int32Array.from(rows, (_, row) => row),
    locals: new Uint8Array(rows.length),
    cleanSeconds: Float32Array.from(seconds),
    activeSeconds: Float32Array.from(seconds),
  };
  return { speakers, weights: seconds, seconds };
}

const oneSpeaker = ({ speakers, weights }: Weighted): SpeakerSum => {
  const sum = new Float64Array(DIMENSION);
  for (let row = 0; row < speakers.count; row++) {
    for (let d = 0; d < DIMENSION; d++) sum[d] += weights[row] * speakers.embeddings[row * DIMENSION + d];
  }
  return { sum, weight: weights.reduce((total, value) => total + value, 0) };
};

async function split(all: Weighted, wanted: number): Promise<number[] | undefined> {
  const tree = await linkage(await cosineDistances(all.speakers, pause, 0), all.speakers.count, 'average', {
    sizes: all.weights,
    pause,
  });
  const speakers = await splitOff([oneSpeaker(all)], all, tree, PARAMETERS, wanted, pause);
  return speakers?.map(({ weight }) => Math.round(10 * weight) / 10);
}

describe('splitOff', () => {
  it('makes a speaker of the little that sounds like nobody, and leaves the one who talks most whole', async () => {
    // A voice that wanders by 40 degrees, and a second of somebody else.
    const talk = items([...Array.from({ length: 10 }, (_, index) => [5 * (index % 9), 2] as const), [100, 1]]);
    expect(await split(talk, 2)).toEqual([20, 1]);
  });

  it('takes off first what is another person for longest, then what is wrong for shortest', async () => {
    const talk = items([
      [0, 10],
      [90, 2],
      [200, 1],
      [20, 4],
      [340, 3],
    ]);
    expect(await split(talk, 4)).toEqual([14, 2, 1, 3]);
  });

  it('gives up where what is left is too short', async () => {
    expect(
      await split(
        items([
          [0, 10],
          [90, 0.2],
        ]),
        2,
      ),
    ).toBeUndefined();
    expect(await split(items([[0, 10]]), 2)).toBeUndefined();
  });

  it('keeps a speaker whom nothing is closest to', async () => {
    const all = items([
      [0, 4],
      [90, 3],
    ]);
    const tree = await linkage(await cosineDistances(all.speakers, pause, 0), 2, 'average', {
      sizes: all.weights,
      pause,
    });
    const nobody = { sum: Float64Array.of(0, 0, 0, 1), weight: 1 };
    const speakers = await splitOff([oneSpeaker(all), nobody], all, tree, PARAMETERS, 3, pause);
    expect(speakers?.map(({ weight }) => weight)).toEqual([3, 1, 4]);
  });
});
