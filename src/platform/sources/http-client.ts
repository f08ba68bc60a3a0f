import { SourceReadError } from '../../jobs/source-error.ts';
import { checkHttpUrl, redirectPolicy, type UrlPolicy } from '../../jobs/url-policy.ts';
import { refuse, type SourceResult } from './source-faults.ts';

export interface HttpClient {
  readonly allowLoopback: boolean;
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>;
  /** Until the headers are there. */
  readonly headersTimeoutMs: number;
  /** Longest silence inside a body. */
  readonly stallTimeoutMs: number;
  /** Pauses before the second, third … try without progress. */
  readonly backoffMs: readonly number[];
  /** Lets others run. */
  readonly pause: () => Promise<void>;
}

export interface Opened {
  readonly response: Response;
  /** Where the redirects led. */
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
 * One GET that follows at most two redirects, each checked against the address policy before it is asked. Any status is
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
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    abort.abort();
  }, client.headersTimeoutMs);
  try {
    const response = await client.fetch(url.href, {
      redirect: 'manual',
      signal: abort.signal,
      // The platform's cache would keep other people's recordings, and answer a range from another version of the file.
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
          // Both: an unread body is dropped by the first, a stuck one only by the second.
          await response.body?.cancel().catch(() => undefined);
          abort.abort();
        },
      },
    };
  } catch {
    return isLate
      ? refuse('timeout', `The server ${url.host} did not answer in time.`)
      : refuse('unreachable', `The server ${url.host} could not be reached.`);
  } finally {
    clearTimeout(timer);
  }
}

async function* bodyChunks(body: Body): AsyncGenerator<Uint8Array> {
  if (!body.response.body) return;
  const reader = body.response.body.getReader();
  const read = watched(body, () => reader.read());
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
 * A body read to its end leaves the connection for the next request; any other is dropped, and nothing waits for it.
 */
function drop({ abort }: Body, reader: ReadableStreamDefaultReader): void {
  reader.cancel().catch(() => undefined);
  abort.abort();
}

/** A silence is noticed at the first of these that ends in it. */
const LOOKS_PER_TIMEOUT = 4;

/**
 * A server that is slower holds up what waits for it, for hours where it drips; speech in most codecs comes faster than
 * it is spoken.
 */
const LEAST_BYTES_PER_SECOND = 8192;

/**
 * The same read, which fails as a SourceReadError: when the connection breaks, when a read waits for `stallTimeoutMs`
 * (a quarter more at most), and when reads that waited as long together brought next to nothing. One timer for a whole
 * body: a timer and a race of promises for each chunk outlive the young generation and fill an isolate's heap.
 */
function watched<T extends { readonly value?: Uint8Array }>(
  body: Body,
  read: () => Promise<T>,
): (() => Promise<T>) & { close(): void } {
  const { host, stallTimeoutMs, abort } = body;
  const leastBytes = (LEAST_BYTES_PER_SECOND * stallTimeoutMs) / 1000;
  let isWaiting = false;
  /** Looks that found the present read waiting, and those that found any, with what came meanwhile. */
  let looks = 0;
  let waits = 0;
  let receivedBytes = 0;
  let fault: string | undefined;
  const timer = setInterval(() => {
    if (!isWaiting) return;
    looks++;
    waits++;
    if (looks > LOOKS_PER_TIMEOUT) fault = `The server ${host} stopped sending.`;
    else if (waits >= LOOKS_PER_TIMEOUT && looks < waits) {
      if (receivedBytes < leastBytes) fault = `The server ${host} sends less than 8 KiB a second.`;
      waits = 0;
      receivedBytes = 0;
    }
    if (fault !== undefined) abort.abort();
  }, stallTimeoutMs / LOOKS_PER_TIMEOUT);
  const next = async (): Promise<T> => {
    looks = 0;
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

/** Facts in the headers of an answer. */

export interface ContentRange {
  readonly start: number;
  readonly end: number;
  /** undefined where the server does not say. */
  readonly total: number | undefined;
}

/** `bytes 0-99/1234`; undefined for anything that does not fit together. */
export function parseContentRange(value: string | null): ContentRange | undefined {
  const match = /^bytes\s+(\d{1,15})-(\d{1,15})\/(\d{1,15}|\*)$/i.exec(value?.trim() ?? '');
  if (!match) return undefined;
  const [start, end] = [Number(match[1]), Number(match[2])];
  const total = match[3] === '*' ? undefined : Number(match[3]);
  return start <= end && (total === undefined || end < total) ? { start, end, total } : undefined;
}

/** What pins a file: its strong entity tag, or else the time of its last change. */
export function validatorOf(headers: Headers): string | undefined {
  const tag = headers.get('ETag');
  if (tag !== null && /^"[^"]*"$/.test(tag)) return tag;
  return headers.get('Last-Modified') ?? undefined;
}

/** Whether an answer says that the file is no longer the pinned one; silence counts as the same. */
export function contradicts(headers: Headers, validator: string): boolean {
  const now = validator.startsWith('"') ? headers.get('ETag') : headers.get('Last-Modified');
  return now !== null && now !== validator;
}

export const isEncoded = (headers: Headers): boolean => !/^(identity)?$/i.test(headers.get('Content-Encoding') ?? '');

/** Declared length of the body, bytes; undefined where it is not that of the file. */
export function contentLength(headers: Headers): number | undefined {
  const value = headers.get('Content-Length');
  return value !== null && /^\d{1,15}$/.test(value) && !isEncoded(headers) ? Number(value) : undefined;
}

const RADIO_HEADERS = ['icy-name', 'icy-br', 'icy-pub', 'icy-genre', 'icy-url', 'icy-metaint'];

/** Whether an answer is a stream of an internet radio (Icecast, SHOUTcast): it names its station, and no length. */
export const isRadio = (headers: Headers): boolean =>
  !headers.has('Content-Length') && RADIO_HEADERS.some((name) => headers.has(name));
