import { expect, it } from 'vitest';
import { LagMeter, LiveLoad } from './live-load.ts';

/** Notes `seconds` of frames of all streams with this lag. @returns the time after them */
function run(load: LiveLoad, from: number, seconds: number, lagMs: number, streams = 10): number {
  for (let at = 0; at < 1000 * seconds; at += 100)
    for (let stream = 0; stream < streams; stream++) load.note(lagMs, from + at);
  return from + 1000 * seconds;
}

it('is overloaded while running streams lag, and accepts streams soon after they catch up', () => {
  for (const streams of [1, 36]) {
    const load = new LiveLoad();
    expect(load.isOverloaded(0)).toBe(false);
    let now = run(load, 0, 20, 2000, streams);
    expect(load.isOverloaded(now)).toBe(false);
    now = run(load, now, 10, 4000, streams);
    expect(load.isOverloaded(now)).toBe(true);
    now = run(load, now, 10, 50, streams);
    expect(load.isOverloaded(now)).toBe(false);
  }
});

it('ignores one late frame, and forgets the lag when no stream runs', () => {
  const load = new LiveLoad();
  let now = run(load, 0, 10, 50);
  load.note(9000, now);
  expect(load.isOverloaded(now)).toBe(false);
  now = run(load, now, 10, 4000);
  expect(load.isOverloaded(now + 6000)).toBe(false);
});

it('sums the queues of all streams and forgets those of reset objects', () => {
  const load = new LiveLoad();
  const [one, two] = [Symbol('one'), Symbol('two')];
  load.noteQueue(one, 100, 0);
  load.noteQueue(two, 10, 0);
  load.noteQueue(two, 20, 100_000);
  expect(load.waitingBytes(100_000)).toBe(120);
  expect(load.waitingBytes(150_000)).toBe(20);
  load.noteQueue(two, 0, 150_000);
  expect(load.waitingBytes(150_000)).toBe(0);
});

it('reports the mean and the maximum of the frames since the last report, and nothing without frames', () => {
  const lag = new LagMeter();
  expect(lag.take()).toBeUndefined();
  for (const lagMs of [0, 10, 51]) lag.note(lagMs);
  expect(lag.take()).toEqual({ frames: 3, meanLagMs: 20, maxLagMs: 51 });
  lag.note(4);
  expect(lag.take()).toEqual({ frames: 1, meanLagMs: 4, maxLagMs: 4 });
  expect(lag.take()).toBeUndefined();
});
