import { describe, expect, it } from 'vitest';
import { KIND, type LocalSpeakers, type Representing } from '../local-speakers.ts';
import { normalise } from '../numerics.ts';
import { settingsOf } from '../parameters.ts';
import { assignSpeakers, distinctSeconds, findSpeakers } from './cluster.ts';

const DIMENSION = 24;
const SECONDS = { step: 1, window: 10 };
const UNBOUNDED = { min: 1, max: Number.POSITIVE_INFINITY };
const { clustering } = settingsOf('precision-2');

/** Deterministic noise in −0.5…0.5. */
function noise(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 48271) % 2147483647;
    return state / 2147483647 - 0.5;
  };
}

/** One row per [voice, window, clean seconds]: the voice's axis and some noise. */
function localSpeakers(
  rows: readonly (readonly [voice: number, window: number, clean: number])[],
  spread = 0.25,
): LocalSpeakers {
  const random = noise(11);
  const embeddings = new Float32Array(rows.length * DIMENSION);
  rows.forEach(([voice], row) => {
    for (let d = 0; d < DIMENSION; d++) embeddings[row * DIMENSION + d] = spread * random() + (d === voice ? 1 : 0);
    normalise(embeddings, row * DIMENSION, DIMENSION);
  });
  return {
    count: rows.length,
    dimension: DIMENSION,
    embeddings,
    windows: Int32Array.from(rows, ([, window]) => window),
    locals: Uint8Array.from(rows, (_, row) => row % 3),
    cleanSeconds: Float32Array.from(rows, ([, , clean]) => clean),
    activeSeconds: Float32Array.from(rows, ([, , clean]) => clean + 0.5),
  };
}

const THREE = localSpeakers(
  Array.from({ length: 30 }, (_, window) => [
    [window % 3, window, 4] as const,
    [(window + 1) % 3, window, 3] as const,
  ]).flat(),
);

describe('findSpeakers', () => {
  it('finds the voices and assigns every local speaker', async () => {
    const model = await findSpeakers(THREE, clustering, UNBOUNDED, SECONDS);
    expect(model.clusters).toBe(3);
    const { clusterOf, posterior } = assignSpeakers(model, THREE);
    const voices = new Map<number, number>();
    for (let row = 0; row < THREE.count; row++) {
      const voice = (Math.floor(row / 2) + (row % 2)) % 3;
      voices.set(voice, voices.get(voice) ?? clusterOf[row]);
      expect(clusterOf[row]).toBe(voices.get(voice));
      const row3 = posterior.subarray(row * 3, row * 3 + 3);
      expect(row3.reduce((sum, value) => sum + value, 0)).toBeCloseTo(1, 5);
      expect(row3[clusterOf[row]]).toBeGreaterThan(0.5);
    }
  });

  it.each([1, 2, 3, 4, 7])('finds exactly %i speakers on request', async (wanted) => {
    const model = await findSpeakers(THREE, clustering, { min: wanted, max: wanted }, SECONDS);
    expect(model.clusters).toBe(wanted);
    const used = new Set(assignSpeakers(model, THREE).clusterOf);
    expect(used.size).toBe(wanted);
  });

  it('absorbs a stray item before it merges voices', async () => {
    // A cough that resembles no voice must not become one of the three speakers.
    const rows = Array.from({ length: 30 }, (_, window) => [window % 3, window, 4] as const);
    const stray = localSpeakers([...rows, [9, 30, 1.2]]);
    const model = await findSpeakers(stray, clustering, { min: 3, max: 3 }, SECONDS);
    const { clusterOf } = assignSpeakers(model, stray);
    expect(new Set(clusterOf.slice(0, 3)).size).toBe(3);
    expect((await findSpeakers(stray, clustering, UNBOUNDED, SECONDS)).clusters).toBe(3);
  });

  it('finds no more speakers than there are local speakers', async () => {
    const two = localSpeakers([
      [0, 0, 2],
      [1, 1, 2],
    ]);
    expect((await findSpeakers(two, clustering, { min: 5, max: 5 }, SECONDS)).clusters).toBe(2);
  });

  it('finds one speaker if no local speaker has enough clean speech', async () => {
    const faint = localSpeakers([[0, 0, 0.1]]);
    const model = await findSpeakers(faint, clustering, UNBOUNDED, SECONDS);
    expect(model.clusters).toBe(1);
    expect(Array.from(assignSpeakers(model, faint).clusterOf)).toEqual([0]);
  });

  it('separates two speakers who only ever overlap', async () => {
    const rows = Array.from({ length: 6 }, (_, window) => [[0, window, 4] as const, [1, window, 4] as const]).flat();
    const overlapped = { ...localSpeakers(rows), cleanSeconds: new Float32Array(rows.length) };
    const model = await findSpeakers(overlapped, clustering, UNBOUNDED, SECONDS);
    expect(model.clusters).toBe(2);
    const { clusterOf } = assignSpeakers(model, overlapped);
    expect(new Set(clusterOf.filter((_, row) => row % 2 === 0)).size).toBe(1);
    expect(clusterOf[0]).not.toBe(clusterOf[1]);
  });

  it('returns the same model for the same input', async () => {
    const [a, b] = [
      await findSpeakers(THREE, clustering, UNBOUNDED, SECONDS),
      await findSpeakers(THREE, clustering, UNBOUNDED, SECONDS),
    ];
    expect(a).toEqual(b);
  });
});

describe('assignSpeakers', () => {
  it('assigns two local speakers of a window to different speakers', async () => {
    const model = await findSpeakers(THREE, clustering, UNBOUNDED, SECONDS);
    // Both have the embedding of voice 0.
    const alike = localSpeakers([
      [0, 5, 3],
      [0, 5, 3],
    ]);
    const { clusterOf } = assignSpeakers(model, alike);
    expect(clusterOf[0]).not.toBe(clusterOf[1]);
  });
});

describe('findSpeakers with a PLDA', () => {
  /** An identity transform in which only the first four axes differ between speakers. */
  const plda = {
    embedding: 'axes',
    inputs: DIMENSION,
    outputs: DIMENSION,
    mean: new Float64Array(DIMENSION),
    offset: new Float64Array(DIMENSION),
    transform: Float64Array.from({ length: DIMENSION ** 2 }, (_, at) => (at % (DIMENSION + 1) === 0 ? 1 : 0)),
    phi: Float64Array.from({ length: DIMENSION }, (_, axis) => (axis < 4 ? 6 : 0.05)),
  };
  const subsegmentsOf = (voices: readonly number[]) => {
    const { embeddings } = localSpeakers(voices.map((voice, index) => [voice, index, 1]));
    const indices = Int32Array.from(voices, (_, index) => index);
    return { count: voices.length, dimension: DIMENSION, indices, embeddings, every: 1 };
  };

  it('finds the voices with and without subsegments', async () => {
    const voices = Array.from({ length: 120 }, (_, index) => Math.floor(index / 4) % 3);
    for (const subsegments of [undefined, subsegmentsOf(voices)]) {
      const model = await findSpeakers(THREE, clustering, UNBOUNDED, SECONDS, { plda, subsegments });
      expect(model.clusters).toBe(3);
      expect(new Set(assignSpeakers(model, THREE).clusterOf).size).toBe(3);
    }
  });

  it('joins the most similar speakers if it finds more than the maximum', async () => {
    expect((await findSpeakers(THREE, clustering, { min: 1, max: 2 }, SECONDS, { plda })).clusters).toBe(2);
  });

  it('accepts a recording with one local speaker', async () => {
    const model = await findSpeakers(localSpeakers([[0, 0, 0.2]]), clustering, UNBOUNDED, SECONDS, { plda });
    expect(model.clusters).toBe(1);
  });

  it('finds the requested number of speakers', async () => {
    for (const wanted of [1, 2, 4]) {
      const model = await findSpeakers(THREE, clustering, { min: wanted, max: wanted }, SECONDS, {
        plda,
        subsegments: subsegmentsOf([0, 0, 1, 1, 2, 2]),
      });
      expect(model.clusters).toBe(wanted);
    }
  });
});

it('separates speakers who only ever overlap, with a PLDA', async () => {
  const order = [0, 1, 1, 0, 0, 1, 1, 0];
  const speakers = localSpeakers(order.map((voice, row) => [voice, Math.floor(row / 2), 0] as const));
  const plda = {
    embedding: 'drawn',
    inputs: DIMENSION,
    outputs: DIMENSION,
    mean: new Float64Array(DIMENSION),
    offset: new Float64Array(DIMENSION),
    transform: Float64Array.from({ length: DIMENSION ** 2 }, (_, at) => (at % (DIMENSION + 1) === 0 ? 1 : 0)),
    phi: new Float64Array(DIMENSION).fill(2),
  };
  const model = await findSpeakers(speakers, clustering, { min: 2, max: 2 }, SECONDS, { plda });
  const { clusterOf } = assignSpeakers(model, speakers);
  expect(Array.from(clusterOf, (label) => Number(label !== clusterOf[0]))).toEqual(order);
});

describe('distinctSeconds', () => {
  const seconds = (windows: number[], clean: number[], kinds?: number[]) => {
    const rows = localSpeakers(windows.map((window, row) => [0, window, clean[row]] as const));
    const given: Representing = kinds ? { ...rows, kinds: Uint8Array.from(kinds) } : rows;
    return distinctSeconds(given, SECONDS);
  };

  it('counts a recording of one window in full', () => {
    expect(Array.from(seconds([0], [4]))).toEqual([4]);
  });

  it('divides speech among the windows that cover it', () => {
    const windows = Array.from({ length: 21 }, (_, window) => window);
    const each = seconds(windows, new Array(21).fill(10));
    expect(each.reduce((sum, value) => sum + value, 0)).toBeCloseTo(30, 6);
    expect(each[0]).toBeGreaterThan(2 * each[10]);
  });

  it('weights a representative as an item in the middle of a long recording', () => {
    expect(seconds([3], [50], [KIND.representative])[0]).toBeCloseTo(5, 6);
  });
});
