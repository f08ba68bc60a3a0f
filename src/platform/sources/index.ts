import { isDataUrl } from '../../contract/data-url.ts';
import type { OpenSource, SourcesPort } from '../../jobs/job-ports.ts';
import { pause } from '../clock.ts';
import { decodeDataUrl } from './data-url.ts';
import { isPassing, type SourceResult } from './errors.ts';
import { type HttpClient, sleep } from './http-client.ts';
import { bytesSource, objectSource } from './object-source.ts';
import { openHttp, pinned } from './open-http.ts';

export { SourceReadError } from './errors.ts';

export interface SourcesOptions extends Partial<HttpClient> {
  readonly bucket: R2Bucket;
  readonly allowLoopback: boolean;
}

const HEADERS_TIMEOUT_MS = 15_000;
/**
 * For who waits in a queue's consumer: a server that is slower is asked again by the copy, which blocks nobody else.
 */
const OPEN_TIMEOUT_MS = 4000;
const OPEN_BACKOFF_MS = [200, 1000];
const STALL_TIMEOUT_MS = 30_000;
const BACKOFF_MS = [200, 1000, 3000];

/** How servers are asked, where the options say nothing else. */
export const httpClient = (options: Partial<HttpClient> & Pick<HttpClient, 'allowLoopback'>): HttpClient => ({
  fetch: (url, init) => fetch(url, init),
  headersTimeoutMs: HEADERS_TIMEOUT_MS,
  stallTimeoutMs: STALL_TIMEOUT_MS,
  backoffMs: BACKOFF_MS,
  pause,
  ...options,
});

/** Recordings by address: http, https, `data:`, and objects in R2. */
export function createSources(options: SourcesOptions): SourcesPort {
  const { bucket } = options;
  const client = httpClient(options);
  const asking = httpClient({ headersTimeoutMs: OPEN_TIMEOUT_MS, backoffMs: OPEN_BACKOFF_MS, ...options });
  return {
    async open(url, maxBytes) {
      if (!isDataUrl(url)) return open(asking, client, url, maxBytes);
      const decoded = await decodeDataUrl(url, client.pause);
      return decoded.ok ? { ok: true, value: { source: bytesSource(decoded.value), identity: 'inline' } } : decoded;
    },

    openObject: (object) => ({
      source: objectSource(bucket, object, client.backoffMs),
      identity: object.identity ?? `${object.key} ${object.etag ?? ''} ${object.sizeBytes}`,
    }),

    async findCopy(key) {
      // Versions before put something after the key.
      const [object] = (await bucket.list({ prefix: key, limit: 1, include: ['customMetadata'] })).objects;
      if (!object) return undefined;
      const { size: sizeBytes, etag, customMetadata } = object;
      return { key: object.key, sizeBytes, etag, identity: customMetadata?.identity };
    },
  };
}

/**
 * Tries again with pauses what may pass; who did not answer in time has held up the step for long enough: the queue
 * asks again.
 */
async function open(
  asking: HttpClient,
  client: HttpClient,
  url: string,
  maxBytes: number,
): Promise<SourceResult<OpenSource | 'copy'>> {
  for (let attempt = 0; ; attempt++) {
    const opened = await openHttp(asking, url, maxBytes);
    if (opened.ok) {
      const source = pinned(client, opened.value, url);
      if (source) {
        const { validator, sizeBytes } = opened.value;
        return { ok: true, value: { source, identity: `${validator} ${sizeBytes}`, close: () => source.close() } };
      }
      await opened.value.answer.cancel();
      return { ok: true, value: 'copy' };
    }
    const { kind } = opened.error;
    if (!isPassing(kind) || kind === 'timeout' || attempt >= asking.backoffMs.length) return opened;
    await sleep(asking.backoffMs[attempt]);
  }
}
