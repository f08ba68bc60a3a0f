import { SourceReadError } from '../../jobs/source-error.ts';
import { checkHttpUrl, redirectPolicy, type UrlPolicy } from '../../jobs/url-policy.ts';
import { refuse, type SourceResult } from './source-faults.ts';

export interface HttpClient {
  readonly allowLoopback: boolean;
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>;
  /** Longest wait for the headers. */
  readonly headersTimeoutMs: number;
  /** Longest silence inside a body. */
  readonly stallTimeoutMs: number;
  /** Pauses before the second, third … try without progress. */
  readonly backoffMs: readonly number[];
  /** Yields to other requests. */
  readonly pause: () => Promise<void>;
}

export interface Opened {
  readonly response: Response;
  /** Address after the redirects. */
  readonly url: URL;
  /** The body's chunks; throws SourceReadError on a broken or silent connection. */
  chunks(): AsyncGenerator<Uint8Array>;
  /** Drops the connection; harmless after the end. */
  cancel(): Promise<void>;
}

const MAX_REDIRECTS = 2;
const REDIRECTS = new Set([301, 302, 303, 307, 308]);

export const sleep = (milliseconds: number): Promise<void> => new Promise((done) => setTimeout(done, milliseconds));

/**
 * One GET that follows at most two redirects, each checked against the address policy before the request. Any status is
 * a success here.
 */
export async function get(
  client: HttpClient,
  address: string,
  headers: Record<string, string>,
): Promise<SourceResult<Opened>> {
  let target = address;
  let policy: UrlPolicy = client;
  for (let hop = 0; ; hop++) {
    const checked = checkHttpUrl(target, policy);
    if (!checked.ok) {
      const { reason, message } = checked.error;
      const kind = reason === 'private_address' ? reason : 'invalid_url';
      return refuse(kind, hop === 0 ? message : `A redirect was refused: ${message}`);
    }
    const opened = await request(client, checked.value, headers);
    if (!opened.ok) return opened;
    const { response } = opened.value;
    const location = response.headers.get('Location');
    if (!REDIRECTS.has(response.status) || location === null) return opened;
    await opened.value.cancel();
    if (hop === MAX_REDIRECTS) {
      return refuse('too_many_redirects', `The address redirects more than ${MAX_REDIRECTS} times.`);
    }
    if (!URL.canParse(location, checked.value.href)) {
      return refuse('invalid_url', `The server ${checked.value.host} redirects to an address that is not valid.`);
    }
    target = new URL(location, checked.value).href;
    policy = redirectPolicy(policy, checked.value);
  }
}

async function request(client: HttpClient, url: URL, headers: Record<string, string>): Promise<SourceResult<Opened>> {
  const abort = new AbortController();
  let isTimedOut = false;
  const timer = setTimeout(() => {
    isTimedOut = true;
    abort.abort();
  }, client.headersTimeoutMs);
  try {
    const response = await client.fetch(url.href, {
      redirect: 'manual',
      signal: abort.signal,
      // The platform's cache would keep private recordings, and could answer a range from another version of the file.
      cache: 'no-store',
      // A compressed body would have other offsets than the file.
      headers: { 'Accept-Encoding': 'identity', 'User-Agent': 'rollcall', ...headers },
    });
    const body: Body = { response, host: url.host, stallTimeoutMs: client.stallTimeoutMs, abort };
    return {
      ok: true,
      value: {
        response,
        url,
        chunks: () => bodyChunks(body),
        cancel: async () => {
          // `cancel` drops an unread body; only `abort` drops one whose read is pending.
          await response.body?.cancel().catch(() => undefined);
          abort.abort();
        },
      },
    };
  } catch {
    return isTimedOut
      ? refuse('timeout', `The server ${url.host} did not answer in time.`)
      : refuse('unreachable', `The server ${url.host} could not be reached.`);
  } finally {
    clearTimeout(timer);
  }
}

async function* bodyChunks(body: Body): AsyncGenerator<Uint8Array> {
  if (!body.response.body) return;
  const reader = body.response.body.getReader();
  const read = withStallTimeout(body, () => reader.read());
  let isDone = false;
  try {
    for (;;) {
      const next = await read();
      isDone = next.done;
      if (next.done) return;
      yield next.value;
    }
  } finally {
    read.close();
    if (!isDone) drop(body, reader);
  }
}

interface Body {
  readonly response: Response;
  readonly host: string;
  readonly stallTimeoutMs: number;
  readonly abort: AbortController;
}

/**
 * Drops a body that was not read to its end, without waiting. After a body's end the connection stays open for reuse.
 */
function drop({ abort }: Body, reader: ReadableStreamDefaultReader): void {
  reader.cancel().catch(() => undefined);
  abort.abort();
}

/** Checks of a waiting read in `stallTimeoutMs`. */
const CHECKS_PER_TIMEOUT = 4;

/**
 * A slower server could occupy its reader for hours. Most codecs need fewer bytes per second of speech, so that a
 * server at this rate still sends faster than real time.
 */
const MIN_BYTES_PER_SECOND = 8192;

/**
 * The same read, which throws SourceReadError when the connection breaks, when one read waits longer than
 * `stallTimeoutMs` (noticed up to a quarter later), and when reads that waited that long together returned fewer than
 * `MIN_BYTES_PER_SECOND`. One timer serves the whole body: a timer and a promise race per chunk would be promoted to
 * the old generation and fill the isolate's heap.
 */
function withStallTimeout<T extends { readonly value?: Uint8Array }>(
  body: Body,
  read: () => Promise<T>,
): (() => Promise<T>) & { close(): void } {
  const { host, stallTimeoutMs, abort } = body;
  const minBytes = (MIN_BYTES_PER_SECOND * stallTimeoutMs) / 1000;
  let isWaiting = false;
  /** Checks that found the current read waiting. */
  let checksOfRead = 0;
  /** Checks that found any read waiting since the last test of the rate, and the bytes received since then. */
  let checks = 0;
  let receivedBytes = 0;
  let fault: string | undefined;
  const timer = setInterval(() => {
    if (!isWaiting) return;
    checksOfRead++;
    checks++;
    if (checksOfRead > CHECKS_PER_TIMEOUT) fault = `The server ${host} stopped sending.`;
    else if (checks >= CHECKS_PER_TIMEOUT && checksOfRead < checks) {
      if (receivedBytes < minBytes) fault = `The server ${host} sends less than 8 KiB a second.`;
      checks = 0;
      receivedBytes = 0;
    }
    if (fault !== undefined) abort.abort();
  }, stallTimeoutMs / CHECKS_PER_TIMEOUT);
  const next = async (): Promise<T> => {
    checksOfRead = 0;
    isWaiting = true;
    try {
      const result = await read();
      receivedBytes += result.value?.byteLength ?? 0;
      return result;
    } catch {
      throw fault === undefined
        ? new SourceReadError({ kind: 'unreachable', message: `The connection to ${host} broke off.` })
        : new SourceReadError({ kind: 'timeout', message: fault });
    } finally {
      isWaiting = false;
    }
  };
  return Object.assign(next, { close: () => clearInterval(timer) });
}

/** A parsed Content-Range header. */
export interface ContentRange {
  readonly start: number;
  readonly end: number;
  /** Undefined if the server does not report it. */
  readonly total: number | undefined;
}

/** Parses `bytes 0-99/1234`; undefined for a malformed or contradictory header. */
export function parseContentRange(value: string | null): ContentRange | undefined {
  const match = /^bytes\s+(\d{1,15})-(\d{1,15})\/(\d{1,15}|\*)$/i.exec(value?.trim() ?? '');
  if (!match) return undefined;
  const [start, end] = [Number(match[1]), Number(match[2])];
  const total = match[3] === '*' ? undefined : Number(match[3]);
  return start <= end && (total === undefined || end < total) ? { start, end, total } : undefined;
}

/** Validator of a file: its strong entity tag, or else its Last-Modified time. */
export function validatorOf(headers: Headers): string | undefined {
  const tag = headers.get('ETag');
  if (tag !== null && /^"[^"]*"$/.test(tag)) return tag;
  return headers.get('Last-Modified') ?? undefined;
}

/** Whether the headers show another version of the file; an absent header counts as the same version. */
export function contradicts(headers: Headers, validator: string): boolean {
  const current = validator.startsWith('"') ? headers.get('ETag') : headers.get('Last-Modified');
  return current !== null && current !== validator;
}

export const isEncoded = (headers: Headers): boolean => !/^(identity)?$/i.test(headers.get('Content-Encoding') ?? '');

/** Declared length of the body in bytes; undefined if it is absent or counts encoded bytes. */
export function contentLength(headers: Headers): number | undefined {
  const value = headers.get('Content-Length');
  return value !== null && /^\d{1,15}$/.test(value) && !isEncoded(headers) ? Number(value) : undefined;
}

const RADIO_HEADERS = ['icy-name', 'icy-br', 'icy-pub', 'icy-genre', 'icy-url', 'icy-metaint'];

/** Whether an answer is an internet radio stream (Icecast, SHOUTcast): it has a station header and no length. */
export const isRadio = (headers: Headers): boolean =>
  !headers.has('Content-Length') && RADIO_HEADERS.some((name) => headers.has(name));
