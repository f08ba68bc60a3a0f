import { Base64Reader, dataOf, hexDigit, isDataUrl, MAX_DATA_URL_BYTES } from '../../contract/data-url.ts';
import type { OpenSource, SourcesPort } from '../../jobs/job-ports.ts';
import { isTemporary } from '../../jobs/source-error.ts';
import { pause } from '../event-loop.ts';
import { bytesSource, objectSource } from '../r2-objects.ts';
import { type HttpClient, sleep } from './http-client.ts';
import { openHttp, pinnedSource } from './http-source.ts';
import { EMPTY, refuse, type SourceResult, tooLarge } from './source-faults.ts';

export interface SourcesOptions extends Partial<HttpClient> {
  readonly bucket: R2Bucket;
  readonly allowLoopback: boolean;
}

const HEADERS_TIMEOUT_MS = 15_000;
/** For a queue consumer: the copy retries slower servers, and blocks no other job. */
const OPEN_TIMEOUT_MS = 4000;
const OPEN_BACKOFF_MS = [200, 1000];
const STALL_TIMEOUT_MS = 30_000;
const BACKOFF_MS = [200, 1000, 3000];

/** The client for recordings; options override its defaults. */
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
  const openingClient = httpClient({ headersTimeoutMs: OPEN_TIMEOUT_MS, backoffMs: OPEN_BACKOFF_MS, ...options });
  return {
    async open(url, maxBytes) {
      if (!isDataUrl(url)) return open(openingClient, client, url, maxBytes);
      const decoded = await decodeDataUrl(url, client.pause);
      return decoded.ok ? { ok: true, value: { source: bytesSource(decoded.value), identity: 'inline' } } : decoded;
    },

    openObject: (object) => ({
      source: objectSource(bucket, object, client.backoffMs),
      identity: object.identity ?? `${object.key} ${object.etag ?? ''} ${object.sizeBytes}`,
    }),

    async findCopy(key) {
      // Earlier versions appended a suffix to the key.
      const [object] = (await bucket.list({ prefix: key, limit: 1, include: ['customMetadata'] })).objects;
      if (!object) return undefined;
      const { size: sizeBytes, etag, customMetadata } = object;
      return { key: object.key, sizeBytes, etag, identity: customMetadata?.identity };
    },
  };
}

/**
 * Opens a recording. Retries transient errors with pauses, except a timeout, which has occupied the step long enough:
 * the queue retries the step.
 */
async function open(
  openingClient: HttpClient,
  client: HttpClient,
  url: string,
  maxBytes: number,
): Promise<SourceResult<OpenSource | 'copy'>> {
  for (let attempt = 0; ; attempt++) {
    const opened = await openHttp(openingClient, url, maxBytes);
    if (opened.ok) {
      const source = pinnedSource(client, opened.value, url);
      if (source) {
        const { validator, sizeBytes } = opened.value;
        return { ok: true, value: { source, identity: `${validator} ${sizeBytes}`, close: () => source.close() } };
      }
      await opened.value.answer.cancel();
      return { ok: true, value: 'copy' };
    }
    const { kind } = opened.error;
    if (!isTemporary(kind) || kind === 'timeout' || attempt >= openingClient.backoffMs.length) return opened;
    await sleep(openingClient.backoffMs[attempt]);
  }
}

/** Some ten milliseconds of work. */
const BLOCK_CHARS = 512 * 1024;

/** The bytes of a `data:` URL, base64 or percent-encoded, at most 8 MiB. @param pause yields to other requests */
export async function decodeDataUrl(url: string, pause: () => Promise<void>): Promise<SourceResult<Uint8Array>> {
  const data = dataOf(url);
  if (!data) return refuse('invalid_url', 'The data: URL has no data after the comma.');
  const decoded = data.isBase64
    ? await fromBase64(url, data.from, pause)
    : { ok: true as const, value: await fromPercent(url, data.from, pause) };
  if (!decoded.ok) return decoded;
  if (decoded.value.length === 0) return { ok: false, error: EMPTY };
  if (decoded.value.length > MAX_DATA_URL_BYTES) return { ok: false, error: tooLarge(MAX_DATA_URL_BYTES) };
  return decoded;
}

async function fromBase64(url: string, from: number, pause: () => Promise<void>): Promise<SourceResult<Uint8Array>> {
  const bytes = new Uint8Array(Math.ceil(((url.length - from) * 3) / 4));
  const reader = new Base64Reader(url, from, bytes);
  for (let to = from; ; await pause()) {
    to = Math.min(to + BLOCK_CHARS, url.length);
    const read = reader.read(to);
    if (!read.ok) return refuse('invalid_url', read.message);
    if (to === url.length) return { ok: true, value: bytes.subarray(0, read.bytes) };
  }
}

async function fromPercent(url: string, from: number, pause: () => Promise<void>): Promise<Uint8Array> {
  const encoded = new TextEncoder().encode(url.slice(from));
  const bytes = new Uint8Array(encoded.length);
  let length = 0;
  for (let i = 0; i < encoded.length; i++) {
    if (i % BLOCK_CHARS === 0) await pause();
    const value =
      encoded[i] === PERCENT ? 16 * hexDigit(encoded[i + 1] ?? 0) + hexDigit(encoded[i + 2] ?? 0) : Number.NaN;
    if (value >= 0) i += 2;
    bytes[length++] = value >= 0 ? value : encoded[i];
  }
  return bytes.subarray(0, length);
}

const PERCENT = 0x25;
