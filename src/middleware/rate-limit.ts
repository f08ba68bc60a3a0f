import { routePath } from 'hono/route';
import type { AppContext, AppMiddleware } from './context.ts';

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
    const name = endpoint === undefined ? `other ${kind}` : `${method} ${endpoint}`;
    const headers = await countCall(c, account.id, account.rateLimits[kind], name);
    await next();
    for (const [header, value] of headers) c.res.headers.set(header, value);
  };
}

/**
 * The same for an address that is itself the credential: the endpoint calls it as soon as the address has named the account.
 *
 * @param limit calls in a window
 */
export async function countAddressCall(c: AppContext, accountId: string, limit: number): Promise<void> {
  const headers = await countCall(c, accountId, limit, `${c.req.method} ${routePath(c)}`);
  for (const [header, value] of headers) c.header(header, value);
}

async function countCall(c: AppContext, accountId: string, limit: number, name: string): Promise<[string, string][]> {
  const { count, resetMs } = await c.get('services').quota.count(accountId, name);
  const resetSeconds = Math.max(1, Math.ceil(resetMs / 1000));
  c.set('rate', { exceeded: count > limit, resetSeconds });
  return [
    ['X-RateLimit-Limit', String(limit)],
    ['X-RateLimit-Remaining', String(Math.max(0, limit - count))],
    ['X-RateLimit-Reset', String(resetSeconds)],
  ];
}
