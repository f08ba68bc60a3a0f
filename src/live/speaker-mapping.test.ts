import { expect, it } from 'vitest';
import type { LiveEngine } from './live-session.ts';
import { SegmentedWindow } from './segmented-window.ts';
import { assignLabels, type LocalSpeaker, priorSharesOf } from './speaker-mapping.ts';
import { Speakers } from './stream-speakers.ts';

const DIMENSION = 8;
const EMBEDDING = { form: 'whole', info: { id: 'fake', dimension: DIMENSION, tuned: {} } };
const engine = { embedding: EMBEDDING, plda: undefined } as unknown as Pick<LiveEngine, 'embedding' | 'plda'>;

/** A voice of two seconds in the direction of one axis, turned a little towards another. */
const voice = (axis: number, also = axis) => {
  const embedding = new Float32Array(DIMENSION);
  embedding[axis] = 1;
  if (also !== axis) {
    embedding[axis] = Math.cos(0.4);
    embedding[also] = Math.sin(0.4);
  }
  return { embedding, seconds: 2 };
};

const local = (axis: number | undefined, also?: number, mayWait = false): LocalSpeaker => ({
  local: 0,
  voice: axis === undefined ? undefined : voice(axis, also),
  continuity: new Float64Array(3),
  mayWait,
});

/** Speakers of a stream, of whom the first `known` are in use with a voice along one axis each. */
function speakersOf(maxSpeakers: number, known: number): Speakers {
  const speakers = new Speakers(engine, maxSpeakers, 64_000, async () => undefined);
  for (let axis = 0; axis < known; axis++) speakers.addVoice(speakers.add(), voice(axis));
  return speakers;
}

const assign = (speakers: Speakers, ...locals: readonly LocalSpeaker[]) =>
  Array.from(assignLabels(locals, speakers, 0.5));

it('gives a new label to a voice similar to no speaker, up to the maximum', () => {
  expect(assign(speakersOf(3, 2), local(1), local(5), local(0))).toEqual([1, 2, 0]);
});

it('shares labels if more local speakers talk than the stream may have speakers', () => {
  expect(assign(speakersOf(1, 1), local(0), local(5))).toEqual([0, 0]);
  expect(assign(speakersOf(1, 1), local(5, undefined, true), local(0))).toEqual([0, 0]);
  expect(assign(speakersOf(2, 2), local(0), local(1), local(5, 1))).toEqual([0, 1, 1]);
});

it('shares no label if there are enough, or without a voice', () => {
  expect(assign(speakersOf(3, 3), local(0), local(0, 1), local(2))).toEqual([0, 1, 2]);
  expect(assign(speakersOf(1, 1), local(0), local(undefined))).toEqual([0, -1]);
});

/** @param speakers one string per local speaker, one letter per frame, x for active */
function windowOf(firstFrame: number, ...speakers: string[]): SegmentedWindow {
  const frames = speakers[0].length;
  const active = Uint8Array.from({ length: frames * speakers.length }, (_, at) =>
    speakers[at % speakers.length][Math.floor(at / speakers.length)] === 'x' ? 1 : 0,
  );
  return new SegmentedWindow(
    firstFrame,
    frames,
    speakers.length,
    Float32Array.from(active),
    new Float32Array(frames),
    active,
  );
}

const sentAs = (label: number, from: number, to: number) => ({
  has: (frame: number, other: number) => other === label && frame >= from && frame < to,
  count: (frame: number) => (frame >= from && frame < to ? 1 : 0),
});
const talk = 'x'.repeat(50);
const rest = '.'.repeat(50);

it('priorSharesOf returns the labels of earlier speech of the same person', () => {
  const wide = windowOf(0, talk + rest + rest, rest + talk + talk);
  const window = windowOf(100, talk, rest);
  const priorShares = priorSharesOf(wide, window, 0, 100, 2, sentAs(1, 50, 100));
  expect([...priorShares]).toEqual([0, 1]);
});

it('priorSharesOf returns 0 for a person without earlier sent speech', () => {
  const wide = windowOf(0, talk + talk + rest, rest + rest + talk);
  const window = windowOf(100, talk, rest);
  expect([...priorSharesOf(wide, window, 0, 100, 1, sentAs(0, 0, 100))]).toEqual([0]);
  const same = windowOf(0, talk + talk + talk, rest + rest + rest);
  expect([...priorSharesOf(same, window, 0, 100, 1, sentAs(0, 0, 0))]).toEqual([0]);
});

it('priorSharesOf scales shares of little speech down, and ignores frames of the shorter window', () => {
  const wide = windowOf(0, `${'.'.repeat(45)}xxxxx${talk}`, rest + rest);
  const window = windowOf(50, talk, rest);
  expect([...priorSharesOf(wide, window, 0, 100, 1, sentAs(0, 0, 100))]).toEqual([5 / 25]);
});
