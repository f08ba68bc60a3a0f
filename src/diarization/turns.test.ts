import { describe, expect, it } from 'vitest';
import { TurnBuilder, turnSeconds } from './turns.ts';

/** One letter a frame per cluster; `.` is silence. Sums count the frames so far. */
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
  it('makes a turn of every run, sorted by start and cluster', () => {
    expect(build(['xx..xx', 'x.xx..'], 0, 1)).toEqual(['0:0-2', '1:0-1', '1:2-4', '0:4-6']);
  });

  it('bridges pauses up to the limit', () => {
    expect(build(['x..x...x'], 2, 1)).toEqual(['0:0-4', '0:7-8']);
  });

  it('drops turns that are too short, after bridging', () => {
    expect(build(['x.x....x'], 1, 3)).toEqual(['0:0-3']);
  });
});

describe('turnSeconds', () => {
  it('keeps turns inside the recording', () => {
    const times = { shiftSamples: 320, offsetSamples: -100, totalSamples: 1000 };
    expect(turnSeconds({ startFrame: 0, endFrame: 4 }, times)).toEqual({ startSeconds: 0, endSeconds: 1000 / 16000 });
  });
});
