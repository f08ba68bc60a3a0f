import { cors as honoCors } from 'hono/cors';
import type { AppMiddleware } from './context.ts';
import { REQUEST_ID_HEADER } from './request-id.ts';

// Any origin may call: the credential is a header that a browser never adds by itself, so there is nothing to forge.
const shared = honoCors({
  origin: '*',
  allowMethods: ['GET', 'HEAD', 'POST', 'PUT', 'DELETE'],
  exposeHeaders: [
    REQUEST_ID_HEADER,
    'Accept-Ranges',
    'Allow',
    'Content-Disposition',
    'Content-Range',
    'ETag',
    'Retry-After',
    'X-Job-Attempt',
    'X-Job-Id',
    'X-Job-Progress',
    'X-RateLimit-Limit',
    'X-RateLimit-Remaining',
    'X-RateLimit-Reset',
  ],
  maxAge: 86400,
});

/**
 * Opens the service to browser pages of any origin; answers preflight requests itself and leaves a bare OPTIONS alone.
 */
export const cors: AppMiddleware = (c, next) => {
  const preflight = c.req.header('Access-Control-Request-Method') !== undefined;
  return c.req.method === 'OPTIONS' && !preflight ? next() : shared(c, next);
};
