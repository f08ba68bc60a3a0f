import { expect, it } from 'vitest';
import { linksOf } from './links.ts';
import { Look } from './look.ts';

/** A look whose local speakers talk in some frames: a string each, x for talking. */
function lookOf(firstFrame: number, ...speakers: string[]): Look {
  const frames = speakers[0].length;
  const active = Uint8Array.from({ length: frames * speakers.length }, (_, at) =>
    speakers[at % speakers.length][Math.floor(at / speakers.length)] === 'x' ? 1 : 0,
  );
  return new Look(firstFrame, frames, speakers.length, Float32Array.from(active), new Float32Array(frames), active);
}

const toldAs = (label: number, from: number, to: number) => ({
  has: (frame: number, other: number) => other === label && frame >= from && frame < to,
  count: (frame: number) => (frame >= from && frame < to ? 1 : 0),
});
const talk = 'x'.repeat(50);
const rest = '.'.repeat(50);

it('finds what was told of the same person before', () => {
  const wide = lookOf(0, talk + rest + rest, rest + talk + talk);
  const seen = lookOf(100, talk, rest);
  const links = linksOf(wide, seen, 0, 100, 2, toldAs(1, 50, 100));
  expect([...links]).toEqual([0, 1]);
});

it('has none for somebody who was not there before, or was not told of', () => {
  const wide = lookOf(0, talk + talk + rest, rest + rest + talk);
  const seen = lookOf(100, talk, rest);
  expect([...linksOf(wide, seen, 0, 100, 1, toldAs(0, 0, 100))]).toEqual([0]);
  const same = lookOf(0, talk + talk + talk, rest + rest + rest);
  expect([...linksOf(same, seen, 0, 100, 1, toldAs(0, 0, 0))]).toEqual([0]);
});

it('says less where there was hardly any speech, and nothing of the frames in question themselves', () => {
  const wide = lookOf(0, `${'.'.repeat(45)}xxxxx${talk}`, rest + rest);
  const seen = lookOf(50, talk, rest);
  expect([...linksOf(wide, seen, 0, 100, 1, toldAs(0, 0, 100))]).toEqual([5 / 25]);
});
