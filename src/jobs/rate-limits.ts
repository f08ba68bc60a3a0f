/** Length of the window in which an account's requests to one endpoint are counted (contract §7). */
export const RATE_WINDOW_MS = 60_000;

/** Requests that an account may send to one endpoint within a window. */
export interface RateLimits {
  /** Of requests that change something. */
  readonly post: number;
  /** Of requests that read. */
  readonly get: number;
}

export const DEFAULT_RATE_LIMITS: RateLimits = { post: 100, get: 300 };

/** A window as it is stored; `startedAt` is in milliseconds since the Unix epoch. */
export interface RateWindow {
  readonly startedAt: number;
  readonly count: number;
}

/**
 * The window after one more request. A window begins with the first request that no earlier one covers, so that no burst
 * of a client is cut in two by a boundary that it cannot see.
 */
export function countRequest(window: RateWindow | undefined, now: number): RateWindow {
  const isOpen = window && now >= window.startedAt && now < window.startedAt + RATE_WINDOW_MS;
  return isOpen ? { ...window, count: window.count + 1 } : { startedAt: now, count: 1 };
}
