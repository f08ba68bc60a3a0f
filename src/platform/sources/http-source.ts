import { release } from '../../audio/index.ts';
import type { ByteSource } from '../../audio/types.ts';
import {
  CHANGED,
  isPassing,
  type SourceError,
  SourceReadError,
  type SourceResult,
  statusError,
  tooSlow,
} from './errors.ts';
import { get, type HttpClient, type Opened, sleep } from './http-client.ts';
import { contradicts, endsEarly, parseContentRange } from './http-headers.ts';

export interface HttpFile {
  readonly url: string;
  /** Entity tag or date that `If-Range` pins. */
  readonly validator?: string;
  readonly sizeBytes: number;
}

export interface HttpSourceOptions {
  /** A server that did not answer in time is asked again at once, for readers that hold up nobody. */
  readonly isPatient?: boolean;
  /** How long after the first read another one is begun; without it as long as something comes. */
  readonly timeoutMs?: number;
}

/**
 * Ranged reads of one file, pinned: a file that changes under the reader is an error, never a mixture. Each read is tried
 * again with pauses when the connection breaks (idle connections that the server has closed are common). Who did not answer in time
 * has held up the reader, and whoever waits behind it, for long enough: the queue asks again.
 *
 * Redirects are followed once and remembered; when what they led to stops working, they are followed anew.
 */
export class HttpSource implements ByteSource {
  readonly sizeBytes: number;
  readonly #client: HttpClient;
  readonly #file: HttpFile;
  readonly #isPatient: boolean;
  readonly #timeoutMs: number;
  #address: string;
  #startedAt: number | undefined;
  #receivedBytes = 0;
  /** Reused by every read. */
  #buffer: ArrayBuffer = EMPTY_BUFFER;
  #isClosed = false;

  constructor(client: HttpClient, file: HttpFile, options: HttpSourceOptions = {}) {
    this.#isPatient = options.isPatient ?? false;
    this.#timeoutMs = options.timeoutMs ?? Number.POSITIVE_INFINITY;
    this.#client = client;
    this.#file = file;
    this.#address = file.url;
    this.sizeBytes = file.sizeBytes;
  }

  async read(offset: number, length: number): Promise<Uint8Array> {
    const wanted = Math.min(length, this.sizeBytes - offset);
    if (wanted <= 0) return new Uint8Array(0);
    const { backoffMs } = this.#client;
    this.#startedAt ??= Date.now();
    for (let attempt = 0; ; attempt++) {
      if (Date.now() - this.#startedAt > this.#timeoutMs) {
        const { host } = new URL(this.#file.url);
        throw new SourceReadError(tooSlow(host, this.#receivedBytes, this.#timeoutMs));
      }
      const result = await this.#tryRead(offset, wanted);
      if (result.ok) {
        this.#receivedBytes += result.value.length;
        return result.value;
      }
      const isRedirected = this.#address !== this.#file.url;
      if (isRedirected) this.#address = this.#file.url;
      const again =
        (isPassing(result.error.kind) && (this.#isPatient || result.error.kind !== 'timeout')) ||
        result.error.kind === 'incomplete' ||
        result.error.kind === 'no_ranges' ||
        (isRedirected && result.error.kind === 'http_status');
      if (!again || attempt >= backoffMs.length) throw new SourceReadError(result.error);
      await sleep(backoffMs[attempt]);
    }
  }

  close(): void {
    this.#isClosed = true;
    release(new Uint8Array(this.#buffer));
    this.#buffer = EMPTY_BUFFER;
  }

  async #tryRead(offset: number, length: number): Promise<SourceResult<Uint8Array>> {
    const last = offset + length - 1;
    const pin: Record<string, string> = this.#file.validator ? { 'If-Range': this.#file.validator } : {};
    const opened = await get(this.#client, this.#address, { Range: `bytes=${offset}-${last}`, ...pin });
    if (!opened.ok) return opened;
    const fault = this.#faultOf(opened.value, offset, last);
    if (fault) {
      await opened.value.cancel();
      return { ok: false, error: fault };
    }
    this.#address = opened.value.url.href;
    return this.#readBody(opened.value, length);
  }

  #faultOf({ response, url }: Opened, offset: number, last: number): SourceError | undefined {
    const { status, headers } = response;
    const { validator, sizeBytes } = this.#file;
    if (status === 416 || status === 412) return CHANGED;
    if (status === 200) {
      // A whole file in answer to If-Range: another file, unless the server says that it is still this one.
      const isSame = validator !== undefined && !contradicts(headers, validator);
      const length = Number(headers.get('Content-Length') ?? Number.NaN);
      return isSame &&
        length === sizeBytes &&
        headers.get(validator.startsWith('"') ? 'ETag' : 'Last-Modified') !== null
        ? { kind: 'no_ranges', message: `The server ${url.host} did not send the part that was asked for.` }
        : CHANGED;
    }
    if (status !== 206) return statusError(url.host, status);
    const range = parseContentRange(headers.get('Content-Range'));
    if (validator !== undefined && contradicts(headers, validator)) return CHANGED;
    if (range?.total !== undefined && range.total !== sizeBytes) return CHANGED;
    if (endsEarly(headers.get('Content-Range'), offset, last)) {
      const message = `The server ${url.host} states ${sizeBytes} bytes for the recording, but what it sends ends before.`;
      return { kind: 'incomplete', message };
    }
    if (!range || range.start !== offset || range.end !== last) {
      return { kind: 'server_error', message: `The server ${url.host} sent another part than was asked for.` };
    }
    return undefined;
  }

  async #readBody(opened: Opened, length: number): Promise<SourceResult<Uint8Array>> {
    // One byte more shows a body that is too long.
    const given = this.#buffer.byteLength > length ? this.#buffer : new ArrayBuffer(length + 1);
    this.#buffer = EMPTY_BUFFER;
    try {
      const filled = await opened.fill(given);
      this.#buffer = filled.buffer;
      if (this.#isClosed) {
        this.close();
        // Nobody waits for it any more: another try would be in vain.
        return { ok: true, value: new Uint8Array(0) };
      }
      if (filled.length === length) return { ok: true, value: new Uint8Array(this.#buffer, 0, length) };
    } catch (error) {
      if (error instanceof SourceReadError) return { ok: false, error: error.error };
      throw error;
    }
    const message = `The server ${opened.url.host} sent a part of the wrong length.`;
    return { ok: false, error: { kind: 'unreachable', message } };
  }
}

const EMPTY_BUFFER = new ArrayBuffer(0);
