import type { AppMiddleware } from './context.ts';

const READS = new Set(['GET', 'HEAD', 'OPTIONS']);

/**
 * Counts the request in its account's window for the endpoint and tells the client where it stands. A request beyond the
 * limit goes on: whatever else is wrong with it is told first, and `endpoint.ts` refuses it right before its work begins.
 * Comes behind `authenticate`, before everything that may refuse.
 *
 * @param endpoint route pattern; undefined for addresses and methods that there are none for, which share one window
 */
export function countRequest(endpoint?: string): AppMiddleware {
  return async (c, next) => {
    const { account } = c.get('principal');
    const method = c.req.method === 'HEAD' ? 'GET' : c.req.method;
    const kind = READS.has(method) ? 'get' : 'post';
    const limit = account.rateLimits[kind];
    const name = endpoint === undefined ? `other ${kind}` : `${method} ${endpoint}`;
    const { count, resetMs } = await c.get('services').quota.count(account.id, name);
    const resetSeconds = Math.max(1, Math.ceil(resetMs / 1000));
    c.set('rate', { exceeded: count > limit, resetSeconds });
    await next();
    c.res.headers.set('X-RateLimit-Limit', String(limit));
    c.res.headers.set('X-RateLimit-Remaining', String(Math.max(0, limit - count)));
    c.res.headers.set('X-RateLimit-Reset', String(resetSeconds));
  };
}
