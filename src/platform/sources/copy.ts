import { type SourceError, SourceReadError } from '../../jobs/source-error.ts';
import { paused } from '../event-loop.ts';
import { createNotedUpload, type NotedUpload, PART_BYTES, resumeNotedUpload } from '../r2-uploads.ts';
import type { HttpClient } from './http-client.ts';
import { HttpSource, openHttp } from './http-source.ts';
import { CHANGED, EMPTY, tooLarge, tooSlow } from './source-faults.ts';

/** The parts of a copy that the bucket has. Plain JSON. */
export interface CopyState {
  readonly uploadId: string;
  readonly noteKey: string;
  readonly parts: readonly R2UploadedPart[];
  readonly copiedBytes: number;
  /** Size of the whole file. */
  readonly sizeBytes: number;
  readonly validator: string;
}

export interface CopyTarget {
  readonly bucket: R2Bucket;
  readonly key: string;
  readonly maxBytes: number;
  /** How long one call may take. */
  readonly timeoutMs: number;
  /** Aborted when the copy is no longer needed. */
  readonly signal: AbortSignal;
  /** Stores the state from which another call resumes. Copies are resumed only with range requests. */
  readonly save: (state: CopyState | undefined) => Promise<void>;
}

export type CopyEnd =
  | { readonly kind: 'whole' }
  /** Time is up; another call continues. */
  | { readonly kind: 'unfinished' }
  | { readonly kind: 'unwanted' }
  | { readonly kind: 'failed'; readonly error: SourceError };

/** A copy may wait longer: it does not occupy a queue consumer. */
const RETRY_TIMEOUTS = { retriesTimeouts: true };

/**
 * Copies a recording into the bucket, in parts, one of them in memory. The object is whole or not there.
 *
 * @param state of the call before, which this one continues
 * @throws errors of R2
 */
export async function copyRecording(
  client: HttpClient,
  url: string,
  target: CopyTarget,
  state?: CopyState,
): Promise<CopyEnd> {
  try {
    // An earlier call may have been interrupted after it completed the copy.
    if (await target.bucket.head(target.key)) return await finish(target);
    return await (state ? resume(client, url, target, state) : begin(client, url, target));
  } catch (error) {
    if (!(error instanceof SourceReadError)) throw error;
    return { kind: 'failed', error: error.error };
  }
}

async function finish({ save }: CopyTarget): Promise<CopyEnd> {
  await save(undefined);
  return { kind: 'whole' };
}

async function begin(client: HttpClient, url: string, target: CopyTarget): Promise<CopyEnd> {
  const opened = await openHttp(client, url, target.maxBytes);
  if (!opened.ok) return { kind: 'failed', error: opened.error };
  const { sizeBytes, validator, hasRanges, answer, chunks } = opened.value;
  const isResumable = hasRanges && validator !== undefined && sizeBytes !== undefined;
  const source = isResumable
    ? new HttpSource(client, { url, sizeBytes, validator, hasRanges }, { ...answer, chunks }, RETRY_TIMEOUTS)
    : undefined;
  const body = source ? streamOf(source, 0) : paused(chunks(), client.pause);
  return store(body, answer.url.host, target, { sizeBytes, isResumable, validator, copiedBytes: 0, parts: [] });
}

async function resume(client: HttpClient, url: string, target: CopyTarget, state: CopyState): Promise<CopyEnd> {
  const { sizeBytes, validator, copiedBytes, parts, uploadId, noteKey } = state;
  const source = new HttpSource(client, { url, sizeBytes, validator, hasRanges: true }, undefined, RETRY_TIMEOUTS);
  const upload = resumeNotedUpload(target.bucket, target.key, uploadId, noteKey);
  const progress = { sizeBytes, isResumable: true, validator, copiedBytes, parts, upload };
  return store(streamOf(source, copiedBytes), new URL(url).host, target, progress);
}

interface CopyProgress {
  readonly sizeBytes: number | undefined;
  readonly isResumable: boolean;
  readonly validator: string | undefined;
  readonly copiedBytes: number;
  readonly parts: readonly R2UploadedPart[];
  readonly upload?: NotedUpload;
}

async function store(
  body: AsyncGenerator<Uint8Array>,
  host: string,
  target: CopyTarget,
  progress: CopyProgress,
): Promise<CopyEnd> {
  const { bucket, key, maxBytes, timeoutMs, signal, save } = target;
  const startedAt = Date.now();
  const identity = identityOf(progress.validator, progress.sizeBytes);
  const parts = [...progress.parts];
  let { upload, copiedBytes } = progress;
  const buffer = new Uint8Array(PART_BYTES);
  let filled = 0;
  const flush = async (): Promise<void> => {
    upload ??= await createNotedUpload(bucket, key, identity);
    parts.push(await upload.uploadPart(parts.length + 1, buffer.subarray(0, filled)));
    copiedBytes += filled;
    filled = 0;
    const { isResumable, sizeBytes, validator } = progress;
    if (!isResumable || sizeBytes === undefined || validator === undefined) return;
    await save({ uploadId: upload.uploadId, noteKey: upload.noteKey, parts, copiedBytes, sizeBytes, validator });
  };
  const drop = async (end: CopyEnd): Promise<CopyEnd> => {
    await save(undefined);
    await upload?.abort().catch(() => undefined); // the sweep finds it
    return end;
  };
  try {
    for await (let chunk of body) {
      if (signal.aborted) return await drop({ kind: 'unwanted' });
      if (copiedBytes + filled + chunk.length > maxBytes)
        return await drop({ kind: 'failed', error: tooLarge(maxBytes) });
      while (chunk.length > 0) {
        const part = chunk.subarray(0, PART_BYTES - filled);
        buffer.set(part, filled);
        filled += part.length;
        chunk = chunk.subarray(part.length);
        if (filled === PART_BYTES) await flush();
      }
      if (Date.now() - startedAt <= timeoutMs) continue;
      // The next call requests the bytes again that are not in a part yet.
      if (progress.isResumable && copiedBytes > progress.copiedBytes) return { kind: 'unfinished' };
      return await drop({ kind: 'failed', error: tooSlow(host, copiedBytes + filled, timeoutMs) });
    }
  } catch (error) {
    const isSame = error instanceof SourceReadError && error.error.kind !== CHANGED.kind;
    // The copy can be resumed, unless the file has changed or the copy is no longer needed.
    if (!isSame || !progress.isResumable || signal.aborted) await drop({ kind: 'unwanted' });
    throw error;
  }
  if (progress.sizeBytes !== undefined && copiedBytes + filled < progress.sizeBytes) {
    await drop({ kind: 'unwanted' });
    throw new SourceReadError({ kind: 'unreachable', message: `The connection to ${host} broke off.` });
  }
  if (copiedBytes + filled === 0) return { kind: 'failed', error: EMPTY };
  if (!upload) {
    await bucket.put(key, buffer.subarray(0, filled), identity);
    return { kind: 'whole' };
  }
  if (filled > 0) await flush();
  await upload.complete(parts);
  return finish(target);
}

/** Identity of the file, by which a pass that began at the server continues with the copy. */
function identityOf(validator: string | undefined, sizeBytes: number | undefined): R2PutOptions {
  if (validator === undefined || sizeBytes === undefined) return {};
  return { customMetadata: { identity: `${validator} ${sizeBytes}` } };
}

async function* streamOf(source: HttpSource, offset: number): AsyncGenerator<Uint8Array> {
  const stream = await source.open(offset);
  try {
    for (let chunk = await stream.read(); chunk; chunk = await stream.read()) yield chunk;
  } finally {
    stream.close();
  }
}
