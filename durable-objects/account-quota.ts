import { createDurable } from 'itty-durable';
import { countRequest, RATE_WINDOW_MS, type RateWindow } from '../src/jobs/app-services.ts';
import type { QuotaRpc } from '../src/platform/quota.ts';

/**
 * Counts the requests of one account per endpoint. Each account has one object, and its method never awaits, so that no
 * two requests get the same number.
 *
 * Every own property is state: the library loads it when the object wakes and writes it after each call, and the answer
 * is sent only after the write. Never forward a client's request to this object: the library would let the client call
 * every method.
 */
export class AccountQuota extends createDurable({ autoPersist: true }) implements QuotaRpc {
  windows: Record<string, RateWindow> = {};

  /** @returns the number of this request in its window, and the milliseconds until the window ends */
  count(endpoint: string): ReturnType<QuotaRpc['count']> {
    const now = Date.now();
    const window = countRequest(this.windows[endpoint], now);
    this.windows[endpoint] = window;
    return { count: window.count, resetMs: window.startedAt + RATE_WINDOW_MS - now };
  }
}
