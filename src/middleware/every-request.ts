import { cors as honoCors } from 'hono/cors';
import { routePath } from 'hono/route';
import type { AppContext, AppMiddleware } from './context.ts';

export const REQUEST_ID_HEADER = 'X-Request-Id';

/** Gives every request an id, which every answer has as a header. Must be the first middleware. */
export const requestId: AppMiddleware = async (c, next) => {
  c.set('requestId', crypto.randomUUID());
  await next();
  c.res.headers.set(REQUEST_ID_HEADER, c.get('requestId'));
};

/**
 * Logs one line per answered request, with the matched route instead of the address: addresses can contain upload
 * tickets and other secrets.
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

/** Forbids caching, unless an answer sets Cache-Control, and content sniffing. */
export const answerHeaders: AppMiddleware = async (c, next) => {
  await next();
  if (!c.res.headers.has('Cache-Control')) c.res.headers.set('Cache-Control', 'no-store');
  c.res.headers.set('X-Content-Type-Options', 'nosniff');
};

// Any origin may call: browsers never add the credential, a header, by themselves, so that requests cannot be forged.
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
 * Permits requests from pages of any origin. Answers preflight requests; passes other OPTIONS requests on.
 */
export const cors: AppMiddleware = (c, next) => {
  const preflight = c.req.header('Access-Control-Request-Method') !== undefined;
  return c.req.method === 'OPTIONS' && !preflight ? next() : shared(c, next);
};

/** Most bytes that are drained, more than any endpoint accepts; beyond them the connection is cut. */
const MAX_DRAINED_BYTES = 2 * 1024 ** 3;
const MAX_DRAIN_MS = 5 * 60_000;
/** Bodies up to this length are in transit already, so that an early answer would not help. */
const SMALL_BODY_BYTES = 64 * 1024;

/**
 * Reads and drops the unread rest of a body after the answer. The runtime cuts the connection of a request that is
 * answered but not read; a client that is still sending then gets a connection reset instead of the answer.
 *
 * A refusal of a large body is sent before the body is read, so that a client that reads while it sends can stop. The
 * answer stays open until the body is dropped, so that a client that reads only after sending gets it, too.
 */
export const drain: AppMiddleware = async (c, next) => {
  await next();
  const { body } = c.req.raw;
  if (!body || body.locked) return;
  const isSmall = Number(c.req.header('Content-Length') ?? Number.POSITIVE_INFINITY) <= SMALL_BODY_BYTES;
  // The answer to HEAD has no body that could stay open.
  if (isSmall || c.res.status < 400 || c.req.method === 'HEAD') await drop(body);
  else await answerMeanwhile(c, body);
};

async function answerMeanwhile(c: AppContext, body: ReadableStream<Uint8Array>): Promise<void> {
  const answer = new Uint8Array(await c.res.arrayBuffer());
  // With a Content-Length the client can use the answer before the connection ends.
  const { readable, writable } = new FixedLengthStream(answer.length);
  const writer = writable.getWriter();
  const finish = async () => {
    try {
      await writer.write(answer);
      await drop(body);
      await writer.close();
    } catch {
      // The client closed the connection.
    }
  };
  c.executionCtx.waitUntil(finish());
  c.res = new Response(readable, c.res);
}

async function drop(body: ReadableStream<Uint8Array>): Promise<void> {
  const reader = body.getReader();
  // Ends a read when the client stops sending.
  const tooLate = setTimeout(() => void reader.cancel().catch(() => undefined), MAX_DRAIN_MS);
  try {
    let droppedBytes = 0;
    while (droppedBytes <= MAX_DRAINED_BYTES) {
      const next = await reader.read();
      if (next.done) return;
      droppedBytes += next.value.length;
    }
  } catch {
    // The client closed the connection.
  } finally {
    clearTimeout(tooLate);
    reader.releaseLock();
  }
}
