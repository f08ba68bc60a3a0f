import { expect, it } from 'vitest';
import type { LocalSpeakers } from '../local-speakers.ts';
import { settingsOf } from '../parameters.ts';
import { SUBSEGMENT_SHIFT_SECONDS } from '../subsegments.ts';
import { normalise } from '../vectors.ts';
import type { Plda } from './plda.ts';
import { findSpeakers } from './strategy.ts';

const DIMENSION = 64;
const SECONDS = { step: 2.5, window: 10 };
const ANYBODY = { min: 1, max: Number.POSITIVE_INFINITY };
const { clustering } = settingsOf('precision-2');
/** Between-speaker variances, falling as those of a fitted PLDA do; within a speaker it is 1. */
const PHI = Float64Array.from({ length: DIMENSION }, (_, axis) => 3 * 0.94 ** axis);
const SCALE = Math.sqrt(PHI.reduce((sum, phi) => sum + phi + 1, 0) / DIMENSION);
const PLDA: Plda = {
  embedding: 'drawn',
  inputs: DIMENSION,
  outputs: DIMENSION,
  mean: new Float64Array(DIMENSION),
  offset: new Float64Array(DIMENSION),
  transform: Float64Array.from({ length: DIMENSION ** 2 }, (_, at) => (at % (DIMENSION + 1) === 0 ? SCALE : 0)),
  phi: PHI,
};

/** Deterministic standard normal numbers (Box and Muller, 1958). */
function normal(seed: number): () => number {
  let state = seed;
  const uniform = () => {
    state = (state * 48271) % 2147483647;
    return state / 2147483647;
  };
  return () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());
}

/**
 * People who talk one after the other: local speakers, and subsegments, which are noisier. Every minute their voices are others by
 * `drift`, in standard deviations within a speaker, as `noise` is.
 */
function recording(people: number, secondsEach: number, { noise, drift }: { noise: number; drift: number }) {
  const random = normal(7);
  const voices = Array.from({ length: people }, () => PHI.map((phi) => Math.sqrt(phi) * random()));
  const rows: number[][] = [];
  const pieces: number[][] = [];
  for (const voice of voices) {
    for (let second = 0; second < secondsEach; second += 60) {
      const now = voice.map((value) => value + drift * random());
      const here = Math.min(60, secondsEach - second);
      for (let at = 0; at < here; at += SECONDS.step) rows.push(Array.from(now, (value) => value + noise * random()));
      for (let at = 0; at < here; at += SUBSEGMENT_SHIFT_SECONDS) {
        pieces.push(Array.from(now, (value) => value + 2 * noise * random()));
      }
    }
  }
  const cleanSeconds = new Float32Array(rows.length).fill(SECONDS.window);
  const speakers: LocalSpeakers = {
    count: rows.length,
    dimension: DIMENSION,
    embeddings: unit(rows),
    windows: Int32Array.from(rows, (_, row) => row),
    locals: new Uint8Array(rows.length),
    cleanSeconds,
    activeSeconds: cleanSeconds,
  };
  const indices = Int32Array.from(pieces, (_, index) => index);
  const subsegments = { count: pieces.length, dimension: DIMENSION, indices, embeddings: unit(pieces), every: 1 };
  return { speakers, subsegments };
}

function unit(rows: readonly number[][]): Float32Array {
  const out = Float32Array.from(rows.flat());
  for (let row = 0; row < rows.length; row++) normalise(out, row * DIMENSION, DIMENSION);
  return out;
}

async function countSpeakers({ speakers, subsegments }: ReturnType<typeof recording>, changes = {}): Promise<number> {
  const parameters = { ...clustering, bayesian: { ...clustering.bayesian, ...changes } };
  return (await findSpeakers(speakers, parameters, ANYBODY, SECONDS, { plda: PLDA, subsegments })).clusters;
}

it('finds many people who say little each: what one costs does not grow with the recording', async () => {
  const many = recording(24, 12, { noise: 0.6, drift: 0 });
  expect(await countSpeakers(many)).toBe(24);
  // As it was after five minutes of speech, whoever's it is.
  expect(await countSpeakers(many, { speakerRegularisation: 8 })).toBeLessThan(12);
});

it('does not take a voice that changes over minutes for several', async () => {
  const two = recording(2, 240, { noise: 1, drift: 1.1 });
  const asTheyAre = { mergeSimilarity: 2 };
  expect(await countSpeakers(two, asTheyAre)).toBe(2);
  expect(await countSpeakers(two, { ...asTheyAre, plainSecondsPerSpeaker: 1e9 })).toBeGreaterThan(2);
});

it('joins who was found twice and sounds the same on average, and nobody else', async () => {
  const two = recording(2, 240, { noise: 1, drift: 0.7 });
  const unbounded = { plainSecondsPerSpeaker: 1e9, speakerRegularisation: 0.5 };
  expect(await countSpeakers(two, { ...unbounded, mergeSimilarity: 2 })).toBeGreaterThan(2);
  // Drawn embeddings are noisier than those of people.
  expect(await countSpeakers(two, { ...unbounded, mergeItemSimilarity: 0 })).toBe(2);
  const many = recording(24, 12, { noise: 0.6, drift: 0 });
  expect(await countSpeakers(many, { mergeSimilarity: 2 })).toBe(await countSpeakers(many));
});
