import type { ByteSource, ByteStream } from '../../audio/audio-ports.ts';
import { textKind } from '../../audio/sniff.ts';
import { isTemporary, type SourceError, SourceReadError } from '../../jobs/source-error.ts';
import {
  contentLength,
  contradicts,
  get,
  type HttpClient,
  isEncoded,
  isRadio,
  type Opened,
  parseContentRange,
  sleep,
  validatorOf,
} from './http-client.ts';
import { CHANGED, EMPTY, endless, type SourceResult, statusError, tooLarge } from './source-faults.ts';

/** What an address leads to. */
export interface OpenedHttp {
  readonly answer: Opened;
  /** Undefined if the server does not report it. */
  readonly sizeBytes: number | undefined;
  /** Entity tag or date that pins the file; undefined if the server sends neither. */
  readonly validator: string | undefined;
  readonly hasRanges: boolean;
  /** The whole body, including the first bytes, which `openHttp` may have inspected. */
  readonly chunks: () => AsyncGenerator<Uint8Array>;
}

/** Requests a recording from its first byte, without retries. Refuses answers that cannot be a recording. */
export async function openHttp(client: HttpClient, url: string, maxBytes: number): Promise<SourceResult<OpenedHttp>> {
  const requested = await get(client, url, { Range: 'bytes=0-' });
  if (!requested.ok) return requested;
  const answer = requested.value;
  const refused = async (error: SourceError) => {
    await answer.cancel();
    return { ok: false, error } as const;
  };
  const { status, headers } = answer.response;
  const { host } = answer.url;
  if (status === 416 && /\/0$/.test(headers.get('Content-Range') ?? '')) return refused(EMPTY);
  // Servers that reject ranges, or answer them badly, may still send the whole file.
  if (status === 416 || status === 400 || status === 501 || (status === 206 && !isUsable(headers))) {
    await answer.cancel();
    return openWhole(client, url, maxBytes);
  }
  if (status !== 200 && status !== 206) return refused(status === 204 ? EMPTY : statusError(host, status));
  return describe(answer, maxBytes);
}

/** Whether the range is the whole file, or the rest can be requested with a validator. */
function isUsable(headers: Headers): boolean {
  const range = parseContentRange(headers.get('Content-Range'));
  if (range?.start !== 0 || range.total === undefined || isEncoded(headers)) return false;
  return range.end === range.total - 1 || validatorOf(headers) !== undefined;
}

async function openWhole(client: HttpClient, url: string, maxBytes: number): Promise<SourceResult<OpenedHttp>> {
  const requested = await get(client, url, {});
  if (!requested.ok) return requested;
  const answer = requested.value;
  if (answer.response.status === 200) return describe(answer, maxBytes);
  await answer.cancel();
  return { ok: false, error: statusError(answer.url.host, answer.response.status) };
}

async function describe(answer: Opened, maxBytes: number): Promise<SourceResult<OpenedHttp>> {
  const { headers, status } = answer.response;
  const hasRanges = status === 206;
  const sizeBytes = hasRanges ? parseContentRange(headers.get('Content-Range'))?.total : contentLength(headers);
  const error =
    sizeBytes !== undefined && sizeBytes > maxBytes
      ? tooLarge(maxBytes)
      : sizeBytes === 0
        ? EMPTY
        : !hasRanges && isRadio(headers)
          ? endless(answer.url.host)
          : undefined;
  if (error) {
    await answer.cancel();
    return { ok: false, error };
  }
  const validator = isEncoded(headers) ? undefined : validatorOf(headers);
  const chunks = checked(answer);
  return { ok: true, value: { answer, sizeBytes, validator, hasRanges, chunks: () => chunks } };
}

/** Bytes in which a web page is recognised. */
const HEAD_BYTES = 1024;

/** The body, refused when it is a web page. */
async function* checked({ response, url, chunks }: Opened): AsyncGenerator<Uint8Array> {
  const body = chunks();
  try {
    if (/^(text\/html|application\/xhtml)/i.test(response.headers.get('Content-Type') ?? '')) {
      const head = await headOf(body);
      if (textKind(head) === 'a web page') {
        const message = `The address on ${url.host} leads to a web page, not to a recording.`;
        throw new SourceReadError({ kind: 'web_page', message });
      }
      yield head;
    }
    yield* body;
  } finally {
    await body.return(undefined);
  }
}

async function headOf(body: AsyncGenerator<Uint8Array>): Promise<Uint8Array> {
  const head: number[] = [];
  let rest = new Uint8Array(0);
  while (head.length < HEAD_BYTES) {
    const next = await body.next();
    if (next.done) break;
    const missing = HEAD_BYTES - head.length;
    head.push(...next.value.subarray(0, missing));
    rest = next.value.slice(missing);
  }
  const all = new Uint8Array(head.length + rest.length);
  all.set(head);
  all.set(rest, head.length);
  return all;
}

/**
 * The recording for one forward pass; undefined if it can only be copied: its validator or its size is unknown.
 */
export function pinnedSource(client: HttpClient, opened: OpenedHttp, url: string): HttpSource | undefined {
  const { sizeBytes, validator, hasRanges, answer, chunks } = opened;
  if (sizeBytes === undefined || validator === undefined) return undefined;
  return new HttpSource(client, { url, sizeBytes, validator, hasRanges }, { ...answer, chunks });
}

/** Bytes read between two pauses, so that a fast source does not block other requests. */
const PAUSE_BYTES = 1 << 20;
/**
 * Progress that resets the count of failed tries: a server that breaks off after every few bytes must not be retried
 * forever.
 */
const PROGRESS_BYTES = 1 << 18;

/** A file on a server, described by the first answer. */
export interface HttpFile {
  readonly url: string;
  readonly sizeBytes: number;
  /** Entity tag or date that pins it. */
  readonly validator: string;
  /** Whether the server supports range requests. */
  readonly hasRanges: boolean;
}

export interface HttpSourceOptions {
  /**
   * Whether a request that timed out is retried at once: for readers that do not occupy a queue consumer.
   */
  readonly retriesTimeouts: boolean;
}

/**
 * One file, pinned by its validator, read forward: a file that changes while it is read is an error, never a mixture.
 * After a broken connection, reading continues at the next byte if the server supports ranges; otherwise the whole file
 * is requested again and the bytes already read are skipped.
 */
export class HttpSource implements ByteSource {
  readonly sizeBytes: number;
  readonly canSeek: boolean;
  #first: Opened | undefined;
  #stream: HttpStream | undefined;

  /** @param first answer that described the file; its body begins at byte 0 */
  constructor(
    private readonly client: HttpClient,
    private readonly file: HttpFile,
    first: Opened | undefined,
    private readonly options: HttpSourceOptions = { retriesTimeouts: false },
  ) {
    this.sizeBytes = file.sizeBytes;
    this.canSeek = file.hasRanges;
    this.#first = first;
  }

  async open(offset: number): Promise<ByteStream> {
    const first = this.#first;
    this.#first = undefined;
    this.#stream?.close();
    if (first && offset > 0) await first.cancel();
    this.#stream = this.#streamOf(offset, this.sizeBytes, offset === 0 ? first : undefined);
    return this.#stream;
  }

  async read(offset: number, length: number): Promise<Uint8Array> {
    if (!this.canSeek) throw new Error('the server gives no ranges');
    const bytes = new Uint8Array(Math.max(0, Math.min(length, this.sizeBytes - offset)));
    const stream = this.#streamOf(offset, offset + bytes.length);
    let filled = 0;
    try {
      for (let chunk = await stream.read(); chunk; chunk = await stream.read()) {
        bytes.set(chunk, filled);
        filled += chunk.length;
      }
    } finally {
      stream.close();
    }
    return bytes;
  }

  /** Cancels the stream, and the first answer if it was not read. */
  close(): void {
    void this.#first?.cancel();
    this.#first = undefined;
    this.#stream?.close();
  }

  #streamOf(offset: number, end: number, opened?: Opened): HttpStream {
    return new HttpStream(this.client, this.file, this.options, { at: offset, end }, opened);
  }
}

class HttpStream implements ByteStream {
  #chunks: AsyncGenerator<Uint8Array> | undefined;
  #opened: Opened | undefined;
  #isClosed = false;
  /** Offset of the next byte. */
  #at: number;
  readonly #end: number;
  /** Offset of the first byte that the current connection returned, and the bytes that it skipped before. */
  #connectedAt: number;
  #skippedBytes = 0;
  /** Failed tries since the stream last reached `#progressAt`. */
  #tries = 0;
  #progressAt = 0;
  #pausedAt: number;

  constructor(
    private readonly client: HttpClient,
    private readonly file: HttpFile,
    private readonly options: HttpSourceOptions,
    { at, end }: { readonly at: number; readonly end: number },
    opened: Opened | undefined,
  ) {
    this.#at = at;
    this.#end = end;
    this.#connectedAt = at;
    this.#pausedAt = at;
    if (opened) this.#take(opened, opened.chunks());
  }

  async read(): Promise<Uint8Array | undefined> {
    while (!this.#isClosed && this.#at < this.#end) {
      try {
        const chunk = await this.#next();
        if (this.#isClosed) break;
        const bytes = chunk.subarray(0, this.#end - this.#at);
        if (bytes.length === 0) continue;
        this.#at += bytes.length;
        if (this.#at >= this.#progressAt) this.#tries = 0;
        if (this.#at - this.#pausedAt >= PAUSE_BYTES) {
          this.#pausedAt = this.#at;
          await this.client.pause();
        }
        return bytes;
      } catch (error) {
        this.#drop();
        if (this.#isClosed) break;
        await this.#backOff(error);
      }
    }
    this.close();
    return undefined;
  }

  close(): void {
    this.#isClosed = true;
    this.#drop();
  }

  /** Waits before the next try. @throws `error` if there must be no other try */
  async #backOff(error: unknown): Promise<void> {
    if (!(error instanceof SourceReadError)) throw error;
    const { kind } = error.error;
    const isRetriable = kind === 'timeout' ? this.options.retriesTimeouts : isTemporary(kind) || kind === 'incomplete';
    const { backoffMs } = this.client;
    if (!isRetriable || this.#tries >= backoffMs.length) throw error;
    // Without ranges each try reads the file from its start: require as much new data as it had to skip.
    if (this.#tries === 0) this.#progressAt = this.#at + Math.max(PROGRESS_BYTES, this.#skippedBytes);
    await sleep(backoffMs[this.#tries++]);
  }

  #drop(): void {
    void this.#chunks?.return(undefined).catch(() => undefined);
    void this.#opened?.cancel();
    this.#chunks = undefined;
    this.#opened = undefined;
  }

  #take(opened: Opened, chunks: AsyncGenerator<Uint8Array>): AsyncGenerator<Uint8Array> {
    this.#opened = opened;
    this.#chunks = chunks;
    return chunks;
  }

  async #next(): Promise<Uint8Array> {
    for (;;) {
      const chunks = this.#chunks ?? (await this.#connect());
      const next = await chunks.next();
      if (!next.done) return next.value;
      const { host } = new URL(this.file.url);
      const receivedBytes = this.#at - this.#connectedAt;
      // Some servers limit the size of one answer.
      if (!this.file.hasRanges || receivedBytes < PROGRESS_BYTES) {
        throw new SourceReadError(receivedBytes === 0 ? incomplete(host, this.file.sizeBytes) : brokeOff(host));
      }
      this.#drop();
    }
  }

  /** Requests the file from the next byte. */
  async #connect(): Promise<AsyncGenerator<Uint8Array>> {
    const { url, validator, hasRanges, sizeBytes } = this.file;
    const last = this.#end < sizeBytes ? this.#end - 1 : '';
    const headers: Record<string, string> = hasRanges
      ? { Range: `bytes=${this.#at}-${last}`, 'If-Range': validator }
      : {};
    const answer = await get(this.client, url, headers);
    if (!answer.ok) throw new SourceReadError(answer.error);
    const opened = answer.value;
    // `close` cannot cancel an answer that was still pending.
    const fault = this.#isClosed ? brokeOff(opened.url.host) : this.#faultOf(opened);
    if (fault) {
      await opened.cancel();
      throw new SourceReadError(fault);
    }
    this.#connectedAt = this.#at;
    this.#skippedBytes = opened.response.status === 200 ? this.#at : 0;
    return this.#take(opened, skip(opened.chunks(), this.#skippedBytes, this.client.pause));
  }

  #faultOf({ response, url }: Opened): SourceError | undefined {
    const { status, headers } = response;
    const { validator, sizeBytes, hasRanges } = this.file;
    if (status === 412) return CHANGED;
    if (status === 416) {
      const [, total] = /\/(\d{1,15})$/.exec(headers.get('Content-Range') ?? '') ?? [];
      const isOther = contradicts(headers, validator) || (total !== undefined && Number(total) !== sizeBytes);
      return isOther ? CHANGED : incomplete(url.host, sizeBytes);
    }
    if (status !== 200 && !(status === 206 && hasRanges)) return statusError(url.host, status);
    if (contradicts(headers, validator)) return CHANGED;
    if (status === 200) {
      // After If-Range, status 200 means a changed file, unless validator and length are the same.
      const isSame = validatorOf(headers) === validator && contentLength(headers) === sizeBytes;
      return isSame ? undefined : CHANGED;
    }
    const range = parseContentRange(headers.get('Content-Range'));
    if (range?.total !== undefined && range.total !== sizeBytes) return CHANGED;
    if (range?.start !== this.#at || isEncoded(headers)) {
      return { kind: 'server_error', message: `The server ${url.host} sent another byte range than requested.` };
    }
    return undefined;
  }
}

/** The chunks without their first `skippedBytes` bytes. */
async function* skip(
  chunks: AsyncGenerator<Uint8Array>,
  skippedBytes: number,
  pause: () => Promise<void>,
): AsyncGenerator<Uint8Array> {
  let remaining = skippedBytes;
  let pausedAt = remaining;
  for await (const chunk of chunks) {
    const rest = chunk.subarray(Math.min(remaining, chunk.length));
    remaining -= chunk.length - rest.length;
    if (rest.length > 0) yield rest;
    if (pausedAt - remaining < PAUSE_BYTES) continue;
    pausedAt = remaining;
    await pause();
  }
}

const brokeOff = (host: string): SourceError => ({
  kind: 'unreachable',
  message: `The connection to ${host} broke off.`,
});

const incomplete = (host: string, sizeBytes: number): SourceError => ({
  kind: 'incomplete',
  message: `The server ${host} announced ${sizeBytes} bytes but sent fewer.`,
});
