import { afterEach, expect, it, vi } from 'vitest';
import { redraw } from './redraw.ts';

afterEach(() => void vi.useRealTimers());

it('draws at the interval, less often where a drawing takes long, and not after its end', () => {
  vi.useFakeTimers();
  let [now, takesMs, drawn] = [0, 1, 0];
  const draw = () => {
    drawn++;
    now += takesMs;
  };
  const stop = redraw(draw, 250, () => now);
  vi.advanceTimersByTime(1000);
  expect(drawn).toBe(4);
  takesMs = 100;
  vi.advanceTimersByTime(250);
  expect(drawn).toBe(5);
  vi.advanceTimersByTime(999);
  expect(drawn).toBe(5);
  vi.advanceTimersByTime(1);
  expect(drawn).toBe(6);
  stop();
  vi.advanceTimersByTime(10_000);
  expect(drawn).toBe(6);
});
