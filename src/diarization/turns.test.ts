import { describe, expect, it } from 'vitest';
import { ExclusiveTurns, TurnBuilder, turnSeconds } from './turns.ts';

/** @param tracks one string per cluster, one letter per frame; `.` is silence */
function build(tracks: readonly string[], maxPause: number, minFrames: number): string[] {
  const builder = new TurnBuilder(maxPause, minFrames, (before: number, after: number) => [before, after]);
  const frames = tracks[0].length;
  let done = 0;
  for (let frame = 0; frame < frames; frame++) {
    const active = tracks.flatMap((track, cluster) => (track[frame] === '.' ? [] : [cluster]));
    builder.push(frame, active, () => done);
    done++;
  }
  return builder
    .finish(() => done)
    .map(({ cluster, startFrame, endFrame, summary }) => {
      expect(summary).toEqual([startFrame, endFrame]);
      return `${cluster}:${startFrame}-${endFrame}`;
    });
}

describe('TurnBuilder', () => {
  it('makes a turn from every run, sorted by start and cluster', () => {
    expect(build(['xx..xx', 'x.xx..'], 0, 1)).toEqual(['0:0-2', '1:0-1', '1:2-4', '0:4-6']);
  });

  it('bridges pauses up to the limit', () => {
    expect(build(['x..x...x'], 2, 1)).toEqual(['0:0-4', '0:7-8']);
  });

  it('drops turns that are too short after bridging', () => {
    expect(build(['x.x....x'], 1, 3)).toEqual(['0:0-3']);
  });
});

describe('turnSeconds', () => {
  it('keeps turns inside the recording', () => {
    const times = { shiftSamples: 320, offsetSamples: -100, totalSamples: 1000 };
    expect(turnSeconds({ startFrame: 0, endFrame: 4 }, times)).toEqual({ startSeconds: 0, endSeconds: 1000 / 16000 });
  });
});

/** @param frames one letter per frame: the cluster with the exclusive turn, or `.` for none */
function buildExclusive(frames: string, maxPause: number, minFrames: number): string[] {
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
  it('bridge pauses up to the limit, except those with a turn of another speaker', () => {
    expect(buildExclusive('00..00...00', 2, 1)).toEqual(['0:0-6', '0:9-11']);
    expect(buildExclusive('00.1.00', 3, 1)).toEqual(['0:0-2', '1:3-4', '0:5-7']);
  });

  it('are not split by frames of another speaker that are too short to keep', () => {
    expect(buildExclusive('0000000000110000000000', 5, 5)).toEqual(['0:0-22']);
    expect(buildExclusive('0000110000', 5, 5)).toEqual(['0:0-10']);
    expect(buildExclusive('0000000000111110000000000', 5, 5)).toEqual(['0:0-10', '1:10-15', '0:15-25']);
  });

  it('never overlap if two speakers alternate every few frames', () => {
    expect(buildExclusive('000110000110000110', 5, 5)).toEqual(['0:0-15']);
    expect(buildExclusive('001100110011', 5, 3)).toEqual([]);
  });

  it('end at a long pause', () => {
    expect(buildExclusive('00011000.......0011100', 2, 3)).toEqual(['0:0-8', '1:17-20']);
  });
});
