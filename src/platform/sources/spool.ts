import { storeBody } from '../r2-upload.ts';
import { EMPTY, SourceReadError, type SourceResult, tooLarge } from './errors.ts';

/** Size in bytes of what an earlier run has stored under `key`; a spool is whole or not there. */
export async function findSpooled(bucket: R2Bucket, key: string): Promise<number | undefined> {
  return (await bucket.head(key))?.size;
}

/**
 * Stores chunks of unknown total length under `key`, one part in memory at a time. What breaks off leaves nothing behind.
 *
 * @throws whatever R2 fails with
 */
export async function spool(
  bucket: R2Bucket,
  key: string,
  chunks: AsyncGenerator<Uint8Array>,
  maxBytes: number,
): Promise<SourceResult<{ readonly sizeBytes: number }>> {
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const next = await chunks.next();
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
    if (stored.ok) return stored;
    // What was not read to its end holds a connection open.
    await chunks.return(undefined);
    return { ok: false, error: stored.error.kind === 'empty' ? EMPTY : tooLarge(maxBytes) };
  } catch (error) {
    if (error instanceof SourceReadError) return { ok: false, error: error.error };
    throw error;
  }
}
