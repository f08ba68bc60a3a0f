import { isDataUrl } from '../../contract/data-url.ts';
import type { SourceRef, SourcesPort } from '../../jobs/ports.ts';
import { decodeDataUrl } from './data-url.ts';
import type { HttpClient } from './http-client.ts';
import { HttpSource } from './http-source.ts';
import { openObject } from './object-source.ts';
import { copyPinned, resolveHttp } from './resolve-http.ts';

export { SourceReadError } from './errors.ts';

export interface SourcesOptions extends Partial<HttpClient> {
  readonly bucket: R2Bucket;
  readonly allowLoopback: boolean;
  /**
   * Copies every recording, also where its server gives ranges. Where one isolate does everything, a server that stalls while it is read in place
   * holds up everybody's analysis; a copy holds up its own job alone.
   */
  readonly copiesAll?: boolean;
  /** How long a copy may take; without it as long as something comes. */
  readonly copyTimeoutMs?: number;
  /** How long a recording that was opened may be read in place; without it as long as something comes. */
  readonly readTimeoutMs?: number;
}

const HEADERS_TIMEOUT_MS = 15_000;
const STALL_TIMEOUT_MS = 30_000;
const BACKOFF_MS = [200, 1000, 3000];

/** Recordings by address: http, https, `data:`, and objects in R2. */
export function createSources(options: SourcesOptions): SourcesPort {
  const client: HttpClient = {
    fetch: (url, init) => fetch(url, init),
    headersTimeoutMs: HEADERS_TIMEOUT_MS,
    stallTimeoutMs: STALL_TIMEOUT_MS,
    backoffMs: BACKOFF_MS,
    ...options,
  };
  const { bucket, copiesAll = false, copyTimeoutMs, readTimeoutMs } = options;
  return {
    async resolve(url, spoolKey, { maxBytes, isCopied = false, signal }) {
      if (!isDataUrl(url))
        return resolveHttp(client, url, {
          bucket,
          prefix: spoolKey,
          maxBytes,
          copyTimeoutMs,
          copiesAll,
          isWhole: isCopied,
          signal,
        });
      const decoded = decodeDataUrl(url);
      if (!decoded.ok) return decoded;
      await bucket.put(spoolKey, decoded.value);
      return { ok: true, value: { kind: 'object', key: spoolKey, sizeBytes: decoded.value.length } };
    },

    copy(ref, spoolKey, signal) {
      return copyPinned(client, ref, { bucket, prefix: spoolKey, maxBytes: ref.sizeBytes, copyTimeoutMs, signal });
    },

    open(ref: SourceRef) {
      return ref.kind === 'http'
        ? new HttpSource(client, ref, { timeoutMs: readTimeoutMs })
        : openObject(bucket, ref, client.backoffMs);
    },
  };
}
