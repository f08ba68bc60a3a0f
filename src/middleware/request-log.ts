import { routePath } from 'hono/route';
import type { AppMiddleware } from './context.ts';

/**
 * One line for every answered request. It names the matched route rather than the address: addresses can hold upload
 * tickets and whatever else a caller pastes into them.
 */
export const requestLog: AppMiddleware = async (c, next) => {
  const startedAt = Date.now();
  await next();
  c.get('services').log('info', 'request', {
    requestId: c.get('requestId'),
    method: c.req.method,
    route: routePath(c),
    status: c.res.status,
    accountId: c.get('principal')?.account.id,
    keyId: c.get('principal')?.keyId,
    milliseconds: Date.now() - startedAt,
  });
};
