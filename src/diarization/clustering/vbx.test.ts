import { describe, expect, it } from 'vitest';
import type { LocalSpeakers } from '../local-speakers.ts';
import { normalise } from '../numerics.ts';
import { settingsOf } from '../parameters.ts';
import { SUBSEGMENT_SHIFT_SECONDS } from '../windows.ts';
import { assignSpeakers, findSpeakers, type SpeakerBounds } from './cluster.ts';
import type { Plda } from './plda.ts';
import { joinDown } from './vbx.ts';

const DIMENSION = 64;
const SECONDS = { step: 2.5, window: 10 };
const ANYBODY = { min: 1, max: Number.POSITIVE_INFINITY };
const { clustering } = settingsOf('precision-2');
/** Between-speaker variances, falling as those of a fitted PLDA do; within a speaker it is 1. */
const PHI = Float64Array.from({ length: DIMENSION }, (_, axis) => 14 * 0.96 ** axis);
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
 * People who talk one after the other: local speakers, and subsegments, which are noisier. Every minute their voices
 * are others by `drift`, in standard deviations within a speaker, as `noise` is.
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
  const parameters = { ...clustering, ...changes };
  return (await findSpeakers(speakers, parameters, ANYBODY, SECONDS, { plda: PLDA, subsegments })).clusters;
}

it('finds many people who say little each', async () => {
  expect(await countSpeakers(recording(new Array(24).fill(12), { noise: 0.6, drift: 0 }))).toBe(24);
});

it('counts every second of a long recording for less: with all of them one voice would be several', async () => {
  const two = recording([240, 240], { noise: 1, drift: 2 });
  expect(await countSpeakers(two, { maxEvidenceSeconds: 1e9 })).toBeGreaterThan(2);
  expect(await countSpeakers(two, { maxEvidenceSeconds: 40 })).toBe(2);
});

it('drops whose share is too small beside the largest', async () => {
  const three = recording([240, 60, 60], { noise: 0.6, drift: 0 });
  expect(await countSpeakers(three, { minPriorShare: 0.1 })).toBe(3);
  expect(await countSpeakers(three, { minPriorShare: 0.6 })).toBe(1);
});

/**
 * Share of the local speakers who get the label that most of their person's get, and the number of people who have one
 * of their own.
 */
async function found(
  { speakers, subsegments, people }: ReturnType<typeof recording>,
  bounds: SpeakerBounds,
  changes = {},
): Promise<{ right: number; apart: number }> {
  const parameters = { ...clustering, ...changes };
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
  expect(await countSpeakers(talk, { speakerRegularisation: 90 })).toBeLessThan(3);
  const { right, apart } = await found(talk, { min: 3, max: 3 }, { speakerRegularisation: 90 });
  expect(apart).toBe(3);
  expect(right).toBeGreaterThan(0.99);
});

it('asks ever less of who is wanted, down to people who are hard to tell from others', async () => {
  const talk = recording([240, 180, 6], { noise: 2, drift: 0.7 });
  const { right, apart } = await found(talk, { min: 3, max: 3 });
  expect(apart).toBe(3);
  expect(right).toBeGreaterThan(0.98);
});

it.each([0.3, 12])('finds who is wanted and talks for six seconds, where a speaker needs %d', async (least) => {
  const talk = recording([240, 180, 6], { noise: 1, drift: 0.7 });
  const limits = { minSpeakerSeconds: 12, wantedMinSpeakerSeconds: least };
  expect((await found(talk, { min: 3, max: 3 }, limits)).right).toBe(1);
});

it('joins fragments where more are found than are wanted, and never two people who talk long', async () => {
  const talk = recording([240, 180, 60], { noise: 1, drift: 2 });
  expect(await countSpeakers(talk, { maxEvidenceSeconds: 1e9 })).toBeGreaterThan(3);
  const { right, apart } = await found(talk, { min: 1, max: 3 }, { maxEvidenceSeconds: 1e9 });
  expect(apart).toBe(3);
  expect(right).toBe(1);
});

describe('joinDown', () => {
  /** Somebody who sounds like an angle of a circle, after so much speech. */
  const speaker = (degrees: number, seconds: number) => {
    const angle = (degrees * Math.PI) / 180;
    return { sum: Float64Array.of(seconds * Math.cos(angle), seconds * Math.sin(angle)), seconds };
  };

  it('joins a fragment before two who talk long, although those are closer', () => {
    const found = joinDown([speaker(0, 100), speaker(40, 100), speaker(130, 1)], 2);
    expect(found.map(({ seconds }) => seconds)).toEqual([100, 101]);
  });

  it('leaves one, at least', () => {
    expect(joinDown([speaker(0, 1), speaker(90, 2)], 0)).toHaveLength(1);
  });
});
