import { expect, it } from 'vitest';
import type { LiveEngine } from './live-session.ts';
import { SegmentedWindow } from './segmented-window.ts';
import { assignLabels, type LocalSpeaker, priorSharesOf } from './speaker-mapping.ts';
import { Speakers } from './stream-speakers.ts';

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

const local = (axis: number | undefined, also?: number, mayWait = false): LocalSpeaker => ({
  local: 0,
  voice: axis === undefined ? undefined : voice(axis, also),
  continuity: new Float64Array(3),
  mayWait,
});

/** Speakers of a stream of at most `most`, the first of whom sound like the first axes. */
function speakersOf(most: number, known: number): Speakers {
  const speakers = new Speakers(engine, most, 64_000, async () => undefined);
  for (let axis = 0; axis < known; axis++) speakers.addVoice(speakers.add(), voice(axis));
  return speakers;
}

const map = (speakers: Speakers, ...locals: readonly LocalSpeaker[]) => Array.from(assignLabels(locals, speakers, 0.5));

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

/** A window whose local speakers talk in some frames: a string each, x for talking. */
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

it('finds the labels that the same person was sent as before', () => {
  const wide = windowOf(0, talk + rest + rest, rest + talk + talk);
  const seen = windowOf(100, talk, rest);
  const priorShares = priorSharesOf(wide, seen, 0, 100, 2, sentAs(1, 50, 100));
  expect([...priorShares]).toEqual([0, 1]);
});

it('has none for a person who was not there before, or was not sent', () => {
  const wide = windowOf(0, talk + talk + rest, rest + rest + talk);
  const seen = windowOf(100, talk, rest);
  expect([...priorSharesOf(wide, seen, 0, 100, 1, sentAs(0, 0, 100))]).toEqual([0]);
  const same = windowOf(0, talk + talk + talk, rest + rest + rest);
  expect([...priorSharesOf(same, seen, 0, 100, 1, sentAs(0, 0, 0))]).toEqual([0]);
});

it('says less where there was hardly any speech, and nothing of the frames in question themselves', () => {
  const wide = windowOf(0, `${'.'.repeat(45)}xxxxx${talk}`, rest + rest);
  const seen = windowOf(50, talk, rest);
  expect([...priorSharesOf(wide, seen, 0, 100, 1, sentAs(0, 0, 100))]).toEqual([5 / 25]);
});
