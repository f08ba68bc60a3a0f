import type { AppMiddleware } from './context.ts';

/** What is read of a body that nobody wanted; more than that and the connection is cut. */
const MAX_DRAINED_BYTES = 64 * 1024 * 1024;

/**
 * Reads what is left of a refused request's body and drops it. The runtime cuts the connection of a request that was
 * answered before its body was read, and a client that is still sending then sees a broken pipe in place of the answer.
 */
export const drain: AppMiddleware = async (c, next) => {
  await next();
  const { body } = c.req.raw;
  if (!body || body.locked) return;
  // Too long to be read for nothing: the sender gets the answer at once, before it sends the rest.
  if (Number(c.req.header('Content-Length') ?? 0) > MAX_DRAINED_BYTES) return;
  const reader = body.getReader();
  try {
    let drainedBytes = 0;
    while (drainedBytes <= MAX_DRAINED_BYTES) {
      const next = await reader.read();
      if (next.done) return;
      drainedBytes += next.value.length;
    }
  } catch {
    // The sender is gone: nobody is left to answer.
  } finally {
    reader.releaseLock();
  }
};
