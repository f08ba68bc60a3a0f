import { cors as honoCors } from 'hono/cors';
import { routePath } from 'hono/route';
import type { AppContext, AppMiddleware } from './context.ts';

export const REQUEST_ID_HEADER = 'X-Request-Id';

/** Gives every request an id, and every answer a header with it. Must come first. */
export const requestId: AppMiddleware = async (c, next) => {
  c.set('requestId', crypto.randomUUID());
  await next();
  c.res.headers.set(REQUEST_ID_HEADER, c.get('requestId'));
};

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

/** Answers are private to a key, unless they say otherwise, and must be taken for what they say they are. */
export const answerHeaders: AppMiddleware = async (c, next) => {
  await next();
  if (!c.res.headers.has('Cache-Control')) c.res.headers.set('Cache-Control', 'no-store');
  c.res.headers.set('X-Content-Type-Options', 'nosniff');
};

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

/** Bytes that are read of an unwanted body, more than any address takes; beyond it the connection is cut. */
const MAX_DRAINED_BYTES = 2 * 1024 ** 3;
const MAX_DRAIN_MS = 5 * 60_000;
/** Bodies up to this length are on their way already: nothing is gained by an answer before their end. */
const SMALL_BODY_BYTES = 64 * 1024;

/**
 * Reads what is left of a request's body that was answered without it, and drops it. The runtime cuts the connection of
 * a request that is answered and not read, and a client that still sends then sees a reset in place of the answer.
 *
 * A refusal of a large body is sent before the body is read, so that a client that listens while it sends can stop, and
 * held open while the body is dropped, so that one that only listens afterwards gets it as well.
 */
export const drain: AppMiddleware = async (c, next) => {
  await next();
  const { body } = c.req.raw;
  if (!body || body.locked) return;
  const isSmall = Number(c.req.header('Content-Length') ?? Number.POSITIVE_INFINITY) <= SMALL_BODY_BYTES;
  // The answer to HEAD has no body that could be held open.
  if (isSmall || c.res.status < 400 || c.req.method === 'HEAD') await drop(body);
  else await answerMeanwhile(c, body);
};

async function answerMeanwhile(c: AppContext, body: ReadableStream<Uint8Array>): Promise<void> {
  const answer = new Uint8Array(await c.res.arrayBuffer());
  // With a length the client knows that it has the whole answer, while the connection waits for the rest of the body.
  const { readable, writable } = new FixedLengthStream(answer.length);
  const writer = writable.getWriter();
  const finish = async () => {
    try {
      await writer.write(answer);
      await drop(body);
      await writer.close();
    } catch {
      // The client has gone, with or without its answer.
    }
  };
  c.executionCtx.waitUntil(finish());
  c.res = new Response(readable, c.res);
}

async function drop(body: ReadableStream<Uint8Array>): Promise<void> {
  const reader = body.getReader();
  // Ends a read that waits for a client which sends no more.
  const tooLate = setTimeout(() => void reader.cancel().catch(() => undefined), MAX_DRAIN_MS);
  try {
    let droppedBytes = 0;
    while (droppedBytes <= MAX_DRAINED_BYTES) {
      const next = await reader.read();
      if (next.done) return;
      droppedBytes += next.value.length;
    }
  } catch {
    // The sender has gone: there is no one to answer.
  } finally {
    clearTimeout(tooLate);
    reader.releaseLock();
  }
}
