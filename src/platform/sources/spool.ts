import { storeBody } from '../r2-upload.ts';
import { EMPTY, type SourceError, SourceReadError, type SourceResult, tooLarge, tooSlow } from './errors.ts';

/** Nobody reads it: the job has ended. */
const UNWANTED: SourceError = { kind: 'gone', message: 'The job of this recording has ended.' };

/** A copy that a run has stored. */
export interface Spooled {
  readonly key: string;
  readonly sizeBytes: number;
}

/** The copy that an earlier run has stored under a key that begins so; a copy is whole or not there. */
export async function findSpooled(bucket: R2Bucket, prefix: string): Promise<Spooled | undefined> {
  const [found] = (await bucket.list({ prefix, limit: 1 })).objects;
  return found && { key: found.key, sizeBytes: found.size };
}

export interface SpoolBounds {
  readonly maxBytes: number;
  /** How long a copy may take. The platform ends the step that makes it after a quarter of an hour, without a word. */
  readonly timeoutMs?: number;
  /** Aborted when nobody needs the copy any more. */
  readonly signal?: AbortSignal;
  /** Whom the chunks come from. */
  readonly host: string;
}

/**
 * Stores chunks of unknown total length under a key of its own that begins with `prefix`: of two runs at once neither must put another file under the
 * plan of the other. One part is in memory at a time. What breaks off leaves nothing behind.
 *
 * @throws whatever R2 fails with
 */
export async function spool(
  bucket: R2Bucket,
  prefix: string,
  chunks: AsyncGenerator<Uint8Array>,
  { maxBytes, timeoutMs = Number.POSITIVE_INFINITY, signal, host }: SpoolBounds,
): Promise<SourceResult<Spooled>> {
  const key = `${prefix}-${crypto.randomUUID()}`;
  const startedAt = Date.now();
  let receivedBytes = 0;
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const next = await chunks.next();
        receivedBytes += next.value?.length ?? 0;
        if (signal?.aborted) throw new SourceReadError(UNWANTED);
        if (!next.done && Date.now() - startedAt > timeoutMs)
          throw new SourceReadError(tooSlow(host, receivedBytes, timeoutMs));
        if (next.done) controller.close();
        else if (next.value.length > 0) controller.enqueue(next.value);
      },
      async cancel() {
        await chunks.return(undefined);
      },
    },
    { highWaterMark: 0 },
  );
  try {
    const stored = await storeBody(bucket, key, body, { contentLength: undefined, maxBytes });
    if (stored.ok) return { ok: true, value: { key, sizeBytes: stored.value.sizeBytes } };
    // What was not read to its end holds a connection open.
    await chunks.return(undefined);
    return { ok: false, error: stored.error.kind === 'empty' ? EMPTY : tooLarge(maxBytes) };
  } catch (error) {
    await chunks.return(undefined).catch(() => undefined);
    if (error instanceof SourceReadError) return { ok: false, error: error.error };
    throw error;
  }
}
