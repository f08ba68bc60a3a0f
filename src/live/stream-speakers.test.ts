import { expect, it } from 'vitest';
import type { LiveEngine } from './live-session.ts';
import { type Item, Speakers, thinned } from './stream-speakers.ts';

const DIMENSION = 8;
const EMBEDDING = { form: 'whole', info: { id: 'fake', dimension: DIMENSION, tuned: {} } };
const engine = { embedding: EMBEDDING, plda: undefined } as unknown as Pick<LiveEngine, 'embedding' | 'plda'>;

/** A voice in the direction of an axis. */
const voice = (axis: number) => ({
  embedding: Float32Array.from({ length: DIMENSION }, (_, d) => (d === axis ? 1 : 0)),
  seconds: 4,
});

/** Speakers of a stream after some voices. @param voices [label, axis] by window */
function speakersAfter(maxSpeakers: number, voices: readonly (readonly [number, number])[]): Speakers {
  const speakers = new Speakers(engine, maxSpeakers, 64_000, async () => undefined);
  voices.forEach(([label, axis], window) => {
    while (speakers.labels <= label) speakers.add();
    speakers.addVoice(label, voice(axis));
    speakers.addItem(label, voice(axis), 10 * window);
  });
  return speakers;
}

/** Two people, the first of whom once got a second label. */
const ONE_OF_TWO_TWICE = [
  [0, 0],
  [1, 1],
  [2, 0],
  [0, 0],
  [1, 1],
] as const;

it('makes the second label of a person unused', async () => {
  const speakers = speakersAfter(3, ONE_OF_TWO_TWICE);
  expect(await speakers.recluster(10)).toBe(true);
  expect(speakers.inUse()).toEqual([0, 1]);
});

it('gives an unused label to a new speaker at the maximum number of labels', async () => {
  const speakers = speakersAfter(3, ONE_OF_TWO_TWICE);
  expect(speakers.isFull).toBe(true);
  await speakers.recluster(10);
  expect(speakers.isFull).toBe(false);
  const label = speakers.add();
  expect(label).toBe(2);
  expect(speakers.labels).toBe(3);
  expect(speakers.isFull).toBe(true);
  speakers.addVoice(label, voice(5));
  expect(speakers.similarity(voice(5).embedding, label)).toBeGreaterThan(0.9);
  expect(speakers.similarity(voice(5).embedding, 0)).toBeLessThan(0.5);
});

it('gives an unused label again only to a voice similar to its last speaker', async () => {
  const speakers = speakersAfter(8, ONE_OF_TWO_TWICE);
  await speakers.recluster(10);
  expect(speakers.inUse()).not.toContain(2);
  expect(speakers.add(voice(7), new Float64Array(3))).toBe(3);
  expect(speakers.add(voice(0), new Float64Array(4))).toBe(2);
});

it('gives an unused label to a cluster without a label', async () => {
  // Two people were sent under label 0, and one person under labels 1 and 2.
  const speakers = speakersAfter(3, [
    [0, 0],
    [0, 3],
    [1, 1],
    [2, 1],
    [0, 0],
    [0, 3],
    [1, 1],
    [0, 0],
  ]);
  await speakers.recluster(20);
  expect(speakers.inUse()).toEqual([0, 1, 2]);
  const mostSimilar = (axis: number) =>
    speakers
      .inUse()
      .reduce((best, label) =>
        speakers.similarity(voice(axis).embedding, label) > speakers.similarity(voice(axis).embedding, best)
          ? label
          : best,
      );
  expect([0, 1, 3].map(mostSimilar)).toEqual([0, 1, 2]);
});

it('returns the voice of a speaker without items, also for a reused label', async () => {
  const speakers = speakersAfter(3, ONE_OF_TWO_TWICE);
  await speakers.recluster(10);
  const label = speakers.add();
  expect(speakers.voiceOf(label).embedding).toHaveLength(0);
  speakers.addVoice(label, { ...voice(5), seconds: 1 });
  speakers.addVoice(label, { ...voice(5), seconds: 2 });
  speakers.addVoice(label, { ...voice(5), seconds: 1.5 });
  const expected = { embeddingId: 'fake', embedding: voice(5).embedding, secondsAlone: 2 };
  expect(speakers.voiceOf(label)).toEqual(expected);
  const restored = speakersAfter(3, []);
  restored.restore(speakers.save());
  expect(restored.voiceOf(label)).toEqual(expected);
  restored.addItem(label, { ...voice(6), seconds: 3 }, 60);
  expect(restored.voiceOf(label)).toEqual({ ...expected, embedding: voice(6).embedding, secondsAlone: 3 });
});

/** Items of two seconds, each in the direction of the axis of its label. */
const itemsOf = (labels: readonly number[]): Item[] =>
  labels.map((label, window) => ({
    label,
    window,
    seconds: 2,
    embedding: Float32Array.from({ length: 4 }, (_, d) => (d === label ? 1 : 0)),
  }));

const labelsOf = (items: readonly Item[]) => items.map(({ label }) => label);
const secondsOf = (items: readonly Item[]) => items.reduce((sum, { seconds }) => sum + seconds, 0);
const repeated = (count: number, ...labels: number[]) => Array.from({ length: count }, () => labels).flat();

it('thinned keeps items up to the maximum unchanged', () => {
  const items = itemsOf([0, 0, 1]);
  expect(thinned(items, 3)).toEqual(items);
});

it('thinned joins adjacent items of one speaker, the oldest first, down to the maximum', () => {
  const items = thinned(itemsOf(repeated(12, 0, 0, 1)), 33);
  expect(labelsOf(items)).toEqual([...repeated(3, 0, 1), ...repeated(9, 0, 0, 1)]);
  expect(items[0]).toMatchObject({ seconds: 4, window: -1, embedding: Float32Array.of(1, 0, 0, 0) });
  expect(secondsOf(items)).toBe(72);
});

it('thinned keeps ten items of an early speaker, however long others alternate', () => {
  let items = itemsOf(repeated(20, 2));
  for (let round = 0; round < 100; round++) items = thinned([...items, ...itemsOf(repeated(5, 0, 1))], 40);
  expect(labelsOf(items).filter((label) => label === 2)).toHaveLength(10);
  expect(items).toHaveLength(40);
  expect(secondsOf(items)).toBe(2 * (20 + 1000));
});

it('thinned keeps one item of each speaker as long as any speaker has two', () => {
  const items = thinned(itemsOf([0, 1, 2, 0, 3, 1]), 4);
  expect(labelsOf(items)).toEqual([0, 1, 2, 3]);
  expect(labelsOf(thinned(items, 3))).toEqual([1, 2, 3]);
});
