import { describe, expect, it } from 'vitest';
import { ExclusiveTurns } from './exclusive-turns.ts';
import { TurnBuilder } from './turns.ts';

/**
 * A digit a frame for the cluster that has the exclusive turn, `.` for nobody; turns go on over pauses of up to
 * `maxPause`.
 */
function build(frames: string, maxPause: number, minFrames: number): string[] {
  const exclusive = new ExclusiveTurns(maxPause, minFrames);
  const turns = new TurnBuilder(maxPause, minFrames, () => undefined);
  [...frames].forEach((letter, frame) => {
    const active = letter === '.' ? [] : [Number(letter)];
    turns.push(frame, active, () => 0);
    exclusive.push(frame, active, (cluster) => turns.startOf(cluster));
  });
  return exclusive.finish().map(({ cluster, startFrame, endFrame }) => `${cluster}:${startFrame}-${endFrame}`);
}

describe('ExclusiveTurns', () => {
  it('bridge pauses up to the limit, and no pause in which another has a turn', () => {
    expect(build('00..00...00', 2, 1)).toEqual(['0:0-6', '0:9-11']);
    expect(build('00.1.00', 3, 1)).toEqual(['0:0-2', '1:3-4', '0:5-7']);
  });

  it('are not cut by frames of somebody else who is dropped: a turn of 22 frames was two of 10', () => {
    expect(build('0000000000110000000000', 5, 5)).toEqual(['0:0-22']);
    expect(build('0000110000', 5, 5)).toEqual(['0:0-10']);
    expect(build('0000000000111110000000000', 5, 5)).toEqual(['0:0-10', '1:10-15', '0:15-25']);
  });

  it('never overlap where two take turns of a few frames', () => {
    expect(build('000110000110000110', 5, 5)).toEqual(['0:0-15']);
    expect(build('001100110011', 5, 3)).toEqual([]);
  });

  it('settle what lies before a long pause', () => {
    expect(build('00011000.......0011100', 2, 3)).toEqual(['0:0-8', '1:17-20']);
  });
});
