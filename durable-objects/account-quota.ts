import { createDurable } from 'itty-durable';
import { countRequest, RATE_WINDOW_MS, type RateWindow } from '../src/jobs/rate-limits.ts';

/**
 * Counts the requests of one account, endpoint by endpoint. There is one object an account and its method never waits,
 * so no two requests get the same number, however many arrive at once.
 *
 * Every own property is state: it is loaded before a call and written after it, and the answer leaves only when the
 * write is safe. Requests of clients must never be forwarded here: the library would let them call every method.
 */
export class AccountQuota extends createDurable({ autoPersist: true }) {
  windows: Record<string, RateWindow> = {};

  /** The number that this request has in its window, and how long the window still lasts. */
  count(endpoint: string): { count: number; resetMs: number } {
    const now = Date.now();
    const window = countRequest(this.windows[endpoint], now);
    this.windows[endpoint] = window;
    return { count: window.count, resetMs: window.startedAt + RATE_WINDOW_MS - now };
  }
}
