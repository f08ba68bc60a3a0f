import { checkHttpUrl } from '../../jobs/url-policy.ts';
import { refuse, SourceReadError, type SourceResult } from './errors.ts';

export interface HttpClient {
  readonly allowLoopback: boolean;
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>;
  /** Until the headers are there. */
  readonly headersTimeoutMs: number;
  /** Longest silence inside a body. */
  readonly stallTimeoutMs: number;
  /** Pauses before the second, third … try. */
  readonly backoffMs: readonly number[];
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
  for (let hop = 0; ; hop++) {
    const checked = checkHttpUrl(target, client);
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
      // A compressed body would have other offsets than the file.
      headers: { 'Accept-Encoding': 'identity', 'User-Agent': 'rollcall', ...headers },
    });
    return {
      ok: true,
      value: {
        response,
        url,
        chunks: () => bodyChunks(response, url.host, client.stallTimeoutMs, abort),
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

async function* bodyChunks(
  response: Response,
  host: string,
  stallTimeoutMs: number,
  abort: AbortController,
): AsyncGenerator<Uint8Array> {
  if (!response.body) return;
  const reader = response.body.getReader();
  let isDone = false;
  try {
    for (;;) {
      const next = await readOrStall(reader, host, stallTimeoutMs);
      isDone = next.done;
      if (next.done) return;
      yield next.value;
    }
  } finally {
    // A body read to its end leaves the connection for the next request; any other is dropped, and nothing waits for it.
    if (!isDone) {
      reader.cancel().catch(() => undefined);
      abort.abort();
    }
  }
}

async function readOrStall(reader: ReadableStreamDefaultReader<Uint8Array>, host: string, stallTimeoutMs: number) {
  let stall = () => {};
  const stalled = new Promise<never>((_, reject) => {
    stall = () => reject(new SourceReadError({ kind: 'timeout', message: `The server ${host} stopped sending.` }));
  });
  const timer = setTimeout(() => stall(), stallTimeoutMs);
  const read = reader.read();
  try {
    return await Promise.race([read, stalled]);
  } catch (error) {
    read.catch(() => undefined);
    if (error instanceof SourceReadError) throw error;
    throw new SourceReadError({ kind: 'unreachable', message: `The connection to ${host} broke off.` });
  } finally {
    clearTimeout(timer);
  }
}
