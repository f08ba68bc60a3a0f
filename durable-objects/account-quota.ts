import { createDurable } from 'itty-durable';
import { countRequest, RATE_WINDOW_MS, type RateWindow } from '../src/jobs/app-services.ts';
import type { QuotaRpc } from '../src/platform/quota.ts';

/**
 * Counts the requests of one account, endpoint by endpoint. There is one object an account and its method never waits,
 * so no two requests get the same number, however many arrive at once.
 *
 * Every own property is state: it is loaded once, when the object wakes, and written after each call, and the answer
 * leaves only when the write is safe. Requests of clients must never be forwarded here: the library would let them call
 * every method.
 */
export class AccountQuota extends createDurable({ autoPersist: true }) implements QuotaRpc {
  windows: Record<string, RateWindow> = {};

  /** The number that this request has in its window, and how long the window still lasts. */
  count(endpoint: string): ReturnType<QuotaRpc['count']> {
    const now = Date.now();
    const window = countRequest(this.windows[endpoint], now);
    this.windows[endpoint] = window;
    return { count: window.count, resetMs: window.startedAt + RATE_WINDOW_MS - now };
  }
}
