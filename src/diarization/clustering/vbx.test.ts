import { describe, expect, it } from 'vitest';
import type { LocalSpeakers } from '../local-speakers.ts';
import { normalise } from '../numerics.ts';
import { settingsOf } from '../parameters.ts';
import { SUBSEGMENT_SHIFT_SECONDS } from '../windows.ts';
import { assignSpeakers, findSpeakers, type SpeakerBounds } from './cluster.ts';
import type { Plda } from './plda.ts';
import { joinToCount } from './vbx.ts';

const DIMENSION = 64;
const SECONDS = { step: 2.5, window: 10 };
const UNBOUNDED = { min: 1, max: Number.POSITIVE_INFINITY };
const { clustering } = settingsOf('precision-2');
/** Between-speaker variances that decrease as those of a fitted PLDA; within a speaker the variance is 1. */
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
 * Local speakers and subsegments of people who talk one after the other; the subsegments are noisier. `drift` changes a
 * voice every minute. `drift` and `noise` are in standard deviations within a speaker.
 */
function recording(secondsOf: readonly number[], { noise, drift }: { noise: number; drift: number }) {
  const random = normal(7);
  const voices = secondsOf.map(() => PHI.map((phi) => Math.sqrt(phi) * random()));
  const people: number[] = [];
  const rows: number[][] = [];
  const subsegmentRows: number[][] = [];
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
        subsegmentRows.push(Array.from(now, (value) => value + 2 * noise * random()));
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
  const indices = Int32Array.from(subsegmentRows, (_, index) => index);
  const subsegments = {
    count: subsegmentRows.length,
    dimension: DIMENSION,
    indices,
    embeddings: unit(subsegmentRows),
    every: 1,
  };
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
  return (await findSpeakers(speakers, parameters, UNBOUNDED, SECONDS, { plda: PLDA, subsegments })).clusters;
}

it('finds 24 speakers with 12 s of speech each', async () => {
  expect(await countSpeakers(recording(new Array(24).fill(12), { noise: 0.6, drift: 0 }))).toBe(24);
});

it('limits the evidence of a long recording, so that drifting voices stay one speaker each', async () => {
  const two = recording([240, 240], { noise: 1, drift: 2 });
  expect(await countSpeakers(two, { evidenceSaturationSeconds: 1e9 })).toBeGreaterThan(2);
  expect(await countSpeakers(two, { evidenceSaturationSeconds: 2 })).toBe(2);
});

/** Share of the local speakers with the most frequent label of their person, and the number of these labels. */
async function clusterQuality(
  { speakers, subsegments, people }: ReturnType<typeof recording>,
  bounds: SpeakerBounds,
  changes = {},
): Promise<{ correct: number; labels: number }> {
  const parameters = { ...clustering, ...changes };
  const model = await findSpeakers(speakers, parameters, bounds, SECONDS, { plda: PLDA, subsegments });
  const { clusterOf } = assignSpeakers(model, speakers);
  const labels = new Set<number>();
  let correct = 0;
  for (const person of new Set(people)) {
    const counts = new Map<number, number>();
    for (const [row, label] of clusterOf.entries()) {
      if (people[row] === person) counts.set(label, (counts.get(label) ?? 0) + 1);
    }
    const [[label, most]] = [...counts].sort((a, b) => b[1] - a[1]) as [[number, number]];
    labels.add(label);
    correct += most;
  }
  return { correct: correct / people.length, labels: labels.size };
}

it('keeps the speakers found when a requested third one says little', async () => {
  const talk = recording([240, 180, 6], { noise: 1, drift: 0.7 });
  expect(await countSpeakers(talk, { speakerRegularisation: 90 })).toBeLessThan(3);
  const { correct, labels } = await clusterQuality(talk, { min: 3, max: 3 }, { speakerRegularisation: 90 });
  expect(labels).toBe(3);
  expect(correct).toBeGreaterThan(0.99);
});

it('lowers the regularisation until it finds a requested speaker with noisy embeddings', async () => {
  const talk = recording([240, 180, 6], { noise: 2, drift: 0.7 });
  const { correct, labels } = await clusterQuality(talk, { min: 3, max: 3 });
  expect(labels).toBe(3);
  expect(correct).toBeGreaterThan(0.98);
});

it('finds a requested speaker with 6 s of speech', async () => {
  const talk = recording([240, 180, 6], { noise: 1, drift: 0.7 });
  expect((await clusterQuality(talk, { min: 3, max: 3 })).correct).toBe(1);
});

it('tells how far the number of speakers is from changing', async () => {
  const marginsOf = async (talk: ReturnType<typeof recording>, bounds = UNBOUNDED) => {
    const options = { plda: PLDA, subsegments: talk.subsegments, countMargins: true };
    return (await findSpeakers(talk.speakers, clustering, bounds, SECONDS, options)).margins;
  };
  const clear = recording([240, 180], { noise: 0.6, drift: 0 });
  expect(await marginsOf(clear)).toEqual({ fewer: 5, more: 5 });
  expect(await marginsOf(clear, { min: 2, max: 2 })).toBeUndefined();
  expect(await marginsOf(recording([60, 60, 6], { noise: 3, drift: 1 }))).toEqual({ fewer: 2, more: 1 });
});

it('joins fragments, not people with much speech, down to the maximum number of speakers', async () => {
  const talk = recording([240, 180, 60], { noise: 1, drift: 2 });
  expect(await countSpeakers(talk, { evidenceSaturationSeconds: 1e9 })).toBeGreaterThan(3);
  const { correct, labels } = await clusterQuality(talk, { min: 1, max: 3 }, { evidenceSaturationSeconds: 1e9 });
  expect(labels).toBe(3);
  expect(correct).toBe(1);
});

describe('joinToCount', () => {
  /** A speaker whose centroid is a direction in a plane. */
  const speaker = (degrees: number, seconds: number) => {
    const angle = (degrees * Math.PI) / 180;
    return { sum: Float64Array.of(seconds * Math.cos(angle), seconds * Math.sin(angle)), seconds };
  };

  it('joins a short fragment before two closer speakers with much speech', () => {
    const found = joinToCount([speaker(0, 100), speaker(40, 100), speaker(130, 1)], 2);
    expect(found.map(({ seconds }) => seconds)).toEqual([100, 101]);
  });

  it('keeps at least one speaker', () => {
    expect(joinToCount([speaker(0, 1), speaker(90, 2)], 0)).toHaveLength(1);
  });
});
