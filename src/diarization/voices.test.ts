import { expect, it } from 'vitest';
import { turnsAlone } from './voices.ts';

const turn = (speaker: number, startSeconds: number, endSeconds: number) => ({ speaker, startSeconds, endSeconds });

it('leaves out what several say at once', () => {
  const turns = [turn(0, 0, 4), turn(1, 3, 6), turn(0, 5, 5.5), turn(2, 8, 9)];
  expect(turnsAlone(turns)).toEqual([turn(0, 0, 3), turn(1, 4, 5), turn(1, 5.5, 6), turn(2, 8, 9)]);
});

it('knows no speech alone where there is none', () => {
  expect(turnsAlone([])).toEqual([]);
  expect(turnsAlone([turn(0, 1, 2), turn(1, 1, 2)])).toEqual([]);
});

it('agrees with counting who talks in every tenth of a second', () => {
  let seed = 11;
  const random = (limit: number) => {
    seed = (seed * 16807) % 2147483647;
    return seed % limit;
  };
  const turns = Array.from({ length: 60 }, () => {
    const start = random(400);
    return turn(random(4), start / 10, (start + 1 + random(30)) / 10);
  }).sort((a, b) => a.startSeconds - b.startSeconds || a.speaker - b.speaker);
  const alone = turnsAlone(turns);
  const at = (list: typeof turns, tenth: number) =>
    list.filter((t) => t.startSeconds * 10 <= tenth + 0.5 && tenth + 0.5 < t.endSeconds * 10);
  for (let tenth = 0; tenth < 430; tenth++) {
    const talking = at(turns, tenth);
    expect(at(alone, tenth).map((t) => t.speaker)).toEqual(talking.length === 1 ? [talking[0].speaker] : []);
  }
});
