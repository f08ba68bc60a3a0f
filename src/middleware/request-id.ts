import type { AppMiddleware } from './context.ts';

export const REQUEST_ID_HEADER = 'X-Request-Id';

/** Gives every request an id of its own and every answer the header that tells it. Must come first. */
export const requestId: AppMiddleware = async (c, next) => {
  c.set('requestId', crypto.randomUUID());
  await next();
  c.res.headers.set(REQUEST_ID_HEADER, c.get('requestId'));
};
