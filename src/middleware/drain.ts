import type { AppContext, AppMiddleware } from './context.ts';

/** What is read of a body that nobody wanted, more than any address takes; beyond it the connection is cut. */
const MAX_DRAINED_BYTES = 2 * 1024 ** 3;
const MAX_DRAIN_MS = 5 * 60_000;
/** Bodies up to this length are on their way already: nothing is gained by an answer before their end. */
const SMALL_BODY_BYTES = 64 * 1024;

/**
 * Reads what is left of a request's body that was answered without it, and drops it. The runtime cuts the connection of a
 * request that is answered and not read, and a client that still sends then sees a reset in place of the answer.
 *
 * A refusal of a large body is sent before the body is read, so that a client that listens while it sends can stop, and held
 * open while the body is dropped, so that one that only listens afterwards gets it as well.
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
    // The sender is gone: nobody is left to answer.
  } finally {
    clearTimeout(tooLate);
    reader.releaseLock();
  }
}
