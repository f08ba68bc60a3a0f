import { expect, it } from 'vitest';
import { LagMeter } from './lag.ts';

it('reports the mean and the maximum of the frames since the last report, and nothing without frames', () => {
  const lag = new LagMeter();
  expect(lag.take()).toBeUndefined();
  for (const lagMs of [0, 10, 51]) lag.note(lagMs);
  expect(lag.take()).toEqual({ frames: 3, meanLagMs: 20, maxLagMs: 51 });
  lag.note(4);
  expect(lag.take()).toEqual({ frames: 1, meanLagMs: 4, maxLagMs: 4 });
  expect(lag.take()).toBeUndefined();
});
