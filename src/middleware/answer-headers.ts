import type { AppMiddleware } from './context.ts';

/** Answers are private to a key, unless they say otherwise, and must be taken for what they say they are. */
export const answerHeaders: AppMiddleware = async (c, next) => {
  await next();
  if (!c.res.headers.has('Cache-Control')) c.res.headers.set('Cache-Control', 'no-store');
  c.res.headers.set('X-Content-Type-Options', 'nosniff');
};
