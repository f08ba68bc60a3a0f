import type { AppMiddleware } from './context.ts';

/** Answers are private to a key and must be taken for what they say they are. */
export const answerHeaders: AppMiddleware = async (c, next) => {
  await next();
  c.res.headers.set('Cache-Control', 'no-store');
  c.res.headers.set('X-Content-Type-Options', 'nosniff');
};
