import { expect, it } from 'vitest';
import { countRequest, RATE_WINDOW_MS } from './app-services.ts';

it('counts requests in a window and starts at one in the next', () => {
  const first = countRequest(undefined, 5000);
  expect(first).toEqual({ startedAt: 5000, count: 1 });
  const second = countRequest(first, 5000 + RATE_WINDOW_MS - 1);
  expect(second).toEqual({ startedAt: 5000, count: 2 });
  expect(countRequest(second, 5000 + RATE_WINDOW_MS)).toEqual({ startedAt: 5000 + RATE_WINDOW_MS, count: 1 });
});

it('starts a new window when the clock was set back', () => {
  expect(countRequest({ startedAt: 5000, count: 9 }, 4999)).toEqual({ startedAt: 4999, count: 1 });
});
