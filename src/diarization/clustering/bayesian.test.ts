import { expect, it } from 'vitest';
import type { LocalSpeakers } from '../local-speakers.ts';
import { settingsOf } from '../parameters.ts';
import { SUBSEGMENT_SHIFT_SECONDS } from '../subsegments.ts';
import { normalise } from '../vectors.ts';
import type { Plda } from './plda.ts';
import { assignSpeakers, findSpeakers, type SpeakerBounds } from './strategy.ts';

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
function recording(secondsOf: readonly number[], { noise, drift }: { noise: number; drift: number }) {
  const random = normal(7);
  const voices = secondsOf.map(() => PHI.map((phi) => Math.sqrt(phi) * random()));
  const people: number[] = [];
  const rows: number[][] = [];
  const pieces: number[][] = [];
  for (const [person, voice] of voices.entries()) {
    const secondsEach = secondsOf[person];
    for (let second = 0; second < secondsEach; second += 60) {
      const now = voice.map((value) => value + drift * random());
      const here = Math.min(60, secondsEach - second);
      for (let at = 0; at < here; at += SECONDS.step) {
        people.push(person);
        rows.push(Array.from(now, (value) => value + noise * random()));
      }
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
  return { speakers, subsegments, people };
}

function unit(rows: readonly number[][]): Float32Array {
  const out = Float32Array.from(rows.flat());
  for (let row = 0; row < rows.length; row++) normalise(out, row * DIMENSION, DIMENSION);
  return out;
}

async function countSpeakers(
  { speakers, subsegments }: Pick<ReturnType<typeof recording>, 'speakers' | 'subsegments'>,
  changes = {},
): Promise<number> {
  const parameters = { ...clustering, bayesian: { ...clustering.bayesian, ...changes } };
  return (await findSpeakers(speakers, parameters, ANYBODY, SECONDS, { plda: PLDA, subsegments })).clusters;
}

it('finds many people who say little each: what one costs does not grow with the recording', async () => {
  const many = recording(new Array(24).fill(12), { noise: 0.6, drift: 0 });
  expect(await countSpeakers(many)).toBe(24);
  // As it was after five minutes of speech, whoever's it is.
  expect(await countSpeakers(many, { speakerRegularisation: 8 })).toBeLessThan(12);
});

it('does not take a voice that changes over minutes for several', async () => {
  const two = recording([240, 240], { noise: 1, drift: 0.9 });
  const asTheyAre = { mergeSimilarity: 2 };
  expect(await countSpeakers(two, asTheyAre)).toBe(2);
  expect(await countSpeakers(two, { ...asTheyAre, plainSecondsPerSpeaker: 1e9 })).toBeGreaterThan(2);
});

it('counts every second of a long recording for less: with all of them one voice would be several', async () => {
  const two = recording([240, 240], { noise: 1, drift: 1.1 });
  const plain = { mergeSimilarity: 2, plainSecondsPerSpeaker: 1e9 };
  expect(await countSpeakers(two, { ...plain, maxEvidenceSeconds: 480 })).toBeGreaterThan(2);
  expect(await countSpeakers(two, { ...plain, maxEvidenceSeconds: 200 })).toBe(2);
});

it('drops whose share is too small beside the largest', async () => {
  const three = recording([240, 60, 60], { noise: 0.6, drift: 0 });
  expect(await countSpeakers(three, { minPriorShare: 0.1 })).toBe(3);
  expect(await countSpeakers(three, { minPriorShare: 0.6 })).toBe(1);
});

it('joins who was found twice and sounds the same on average, and nobody else', async () => {
  const two = recording([240, 240], { noise: 1, drift: 0.7 });
  const unbounded = { plainSecondsPerSpeaker: 1e9, speakerRegularisation: 0.5 };
  expect(await countSpeakers(two, { ...unbounded, mergeSimilarity: 2 })).toBeGreaterThan(2);
  // Drawn embeddings are noisier than those of people.
  expect(await countSpeakers(two, { ...unbounded, mergeItemSimilarity: 0 })).toBe(2);
  const many = recording(new Array(24).fill(12), { noise: 0.6, drift: 0 });
  expect(await countSpeakers(many, { mergeSimilarity: 2 })).toBe(await countSpeakers(many));
});

/** Share of the local speakers who get the label that most of their person's get, and the number of people who have one of their own. */
async function found(
  { speakers, subsegments, people }: ReturnType<typeof recording>,
  bounds: SpeakerBounds,
  changes = {},
): Promise<{ right: number; apart: number }> {
  const parameters = { ...clustering, bayesian: { ...clustering.bayesian, ...changes } };
  const model = await findSpeakers(speakers, parameters, bounds, SECONDS, { plda: PLDA, subsegments });
  const { clusterOf } = assignSpeakers(model, speakers);
  const labels = new Set<number>();
  let right = 0;
  for (const person of new Set(people)) {
    const counts = new Map<number, number>();
    for (const [row, label] of clusterOf.entries()) {
      if (people[row] === person) counts.set(label, (counts.get(label) ?? 0) + 1);
    }
    const [[label, most]] = [...counts].sort((a, b) => b[1] - a[1]) as [[number, number]];
    labels.add(label);
    right += most;
  }
  return { right: right / people.length, apart: labels.size };
}

it('keeps those it found where one more is wanted, who says little', async () => {
  const talk = recording([240, 180, 6], { noise: 1, drift: 0.7 });
  expect(await countSpeakers(talk, { speakerRegularisation: 12 })).toBeLessThan(3);
  const { right, apart } = await found(talk, { min: 3, max: 3 }, { speakerRegularisation: 12 });
  expect(apart).toBe(3);
  expect(right).toBeGreaterThan(0.99);
});

it('asks ever less of who is wanted, down to people who are hard to tell from others', async () => {
  const talk = recording([240, 180, 6], { noise: 2, drift: 0.7 });
  const { right, apart } = await found(talk, { min: 3, max: 3 });
  expect(apart).toBe(3);
  expect(right).toBeGreaterThan(0.98);
});

it('does not ask so little of who is wanted that a few seconds of somebody else are a person', async () => {
  const talk = recording([240, 180, 6], { noise: 1, drift: 0.7 });
  const bounds = { min: 3, max: 3 };
  expect((await found(talk, bounds, { minSpeakerSeconds: 12 })).right).toBe(1);
  expect((await found(talk, bounds, { wantedMinSpeakerSeconds: 12 })).right).toBeLessThan(0.9);
});

it('joins fragments where more are found than are wanted, and never two people who talk long', async () => {
  const talk = recording([240, 180, 60], { noise: 1, drift: 1.1 });
  const twice = { plainSecondsPerSpeaker: 1e9, mergeSimilarity: 2, sameItemSimilarity: 2 };
  expect(await countSpeakers(talk, twice)).toBeGreaterThan(3);
  const { right, apart } = await found(talk, { min: 1, max: 3 }, twice);
  expect(apart).toBe(3);
  expect(right).toBe(1);
});
