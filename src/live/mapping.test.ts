import { expect, it } from 'vitest';
import { type Local, mapLocals } from './mapping.ts';
import { Speakers } from './speakers.ts';
import type { LiveEngine } from './types.ts';

const DIMENSION = 8;
const EMBEDDING = { form: 'whole', info: { id: 'fake', dimension: DIMENSION, tuned: {} } };
const engine = { embedding: EMBEDDING, plda: undefined } as unknown as Pick<LiveEngine, 'embedding' | 'plda'>;

/** A voice of two seconds that sounds like one of the axes, and a little like another one. */
const voice = (axis: number, also = axis) => {
  const embedding = new Float32Array(DIMENSION);
  embedding[axis] = 1;
  if (also !== axis) {
    embedding[axis] = Math.cos(0.4);
    embedding[also] = Math.sin(0.4);
  }
  return { embedding, seconds: 2 };
};

const local = (axis: number | undefined, also?: number, mayWait = false): Local => ({
  local: 0,
  voice: axis === undefined ? undefined : voice(axis, also),
  continuity: new Float64Array(3),
  mayWait,
});

/** Speakers of a stream of at most `most`, the first of whom sound like the first axes. */
function speakersOf(most: number, known: number): Speakers {
  const speakers = new Speakers(engine, most, 64_000, async () => undefined);
  for (let axis = 0; axis < known; axis++) speakers.hear(speakers.add(), voice(axis));
  return speakers;
}

const map = (speakers: Speakers, ...locals: readonly Local[]) => Array.from(mapLocals(locals, speakers, 0.5));

it('takes who is like nobody for somebody new, as long as there may be one more', () => {
  expect(map(speakersOf(3, 2), local(1), local(5), local(0))).toEqual([1, 2, 0]);
});

it('tells all that is said where fewer speakers are allowed than talk: the others were left out', () => {
  expect(map(speakersOf(1, 1), local(0), local(5))).toEqual([0, 0]);
  expect(map(speakersOf(1, 1), local(5, undefined, true), local(0))).toEqual([0, 0]);
  expect(map(speakersOf(2, 2), local(0), local(1), local(5, 1))).toEqual([0, 1, 1]);
});

it('leaves nobody a share where there are labels enough, nor before anything is heard of a voice', () => {
  expect(map(speakersOf(3, 3), local(0), local(0, 1), local(2))).toEqual([0, 1, 2]);
  expect(map(speakersOf(1, 1), local(0), local(undefined))).toEqual([0, -1]);
});
