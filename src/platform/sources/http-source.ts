import type { ByteSource, ByteStream } from '../../audio/audio-ports.ts';
import { CHANGED, isPassing, type SourceError, SourceReadError, statusError } from './errors.ts';
import { get, type HttpClient, type Opened, sleep } from './http-client.ts';
import { contentLength, contradicts, isEncoded, parseContentRange, validatorOf } from './http-headers.ts';

/** Read between two pauses: a fast source would keep everybody else waiting. */
const PAUSE_BYTES = 1 << 20;
/**
 * Tries are counted until so much has come: a server that breaks off after every few bytes would be asked without an
 * end.
 */
const PROGRESS_BYTES = 1 << 18;

/** A file on a server, as its first answer describes it. */
export interface HttpFile {
  readonly url: string;
  readonly sizeBytes: number;
  /** Entity tag or date that pins it. */
  readonly validator: string;
  /** Whether the server gives ranges. */
  readonly hasRanges: boolean;
}

export interface HttpSourceOptions {
  /**
   * Whether a server that did not answer in time is asked again at once: for readers that do not occupy a queue
   * consumer.
   */
  readonly isPatient: boolean;
}

/**
 * One file, pinned, read forward: a file that changes under the reader is an error, never a mixture. A connection that
 * breaks continues at the next byte, where the server gives ranges; elsewhere the file is asked for again and what has
 * come is passed over.
 */
export class HttpSource implements ByteSource {
  readonly sizeBytes: number;
  readonly canSeek: boolean;
  #first: Opened | undefined;
  #stream: HttpStream | undefined;

  /** @param first the answer that described the file, whose body begins with its first byte */
  constructor(
    private readonly client: HttpClient,
    private readonly file: HttpFile,
    first: Opened | undefined,
    private readonly options: HttpSourceOptions = { isPatient: false },
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
  /** Place of the next byte. */
  #at: number;
  readonly #end: number;
  /** Where the present connection began to give bytes, and how many it had to pass over for that. */
  #connectedAt: number;
  #passedBytes = 0;
  /** Tries that failed, counted until the stream has come to `#progressAt`. */
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
        const wanted = chunk.subarray(0, this.#end - this.#at);
        if (wanted.length === 0) continue;
        this.#at += wanted.length;
        if (this.#at >= this.#progressAt) this.#tries = 0;
        if (this.#at - this.#pausedAt >= PAUSE_BYTES) {
          this.#pausedAt = this.#at;
          await this.client.pause();
        }
        return wanted;
      } catch (error) {
        this.#drop();
        if (this.#isClosed) break;
        await this.#rest(error);
      }
    }
    this.close();
    return undefined;
  }

  close(): void {
    this.#isClosed = true;
    this.#drop();
  }

  /** Waits for the next try. @throws what the last one failed with, where there is none */
  async #rest(error: unknown): Promise<void> {
    if (!(error instanceof SourceReadError)) throw error;
    const { kind } = error.error;
    const isWorthATry = kind === 'timeout' ? this.options.isPatient : isPassing(kind) || kind === 'incomplete';
    const { backoffMs } = this.client;
    if (!isWorthATry || this.#tries >= backoffMs.length) throw error;
    // What was passed over counts as much as what came: a whole file would be read again and again.
    if (this.#tries === 0) this.#progressAt = this.#at + Math.max(PROGRESS_BYTES, this.#passedBytes);
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
      const cameBytes = this.#at - this.#connectedAt;
      // Some servers limit the size of one answer.
      if (!this.file.hasRanges || cameBytes < PROGRESS_BYTES) {
        throw new SourceReadError(cameBytes === 0 ? incomplete(host, this.file.sizeBytes) : brokeOff(host));
      }
      this.#drop();
    }
  }

  /** Asks for the file from the next byte on. */
  async #connect(): Promise<AsyncGenerator<Uint8Array>> {
    const { url, validator, hasRanges, sizeBytes } = this.file;
    const last = this.#end < sizeBytes ? this.#end - 1 : '';
    const headers: Record<string, string> = hasRanges
      ? { Range: `bytes=${this.#at}-${last}`, 'If-Range': validator }
      : {};
    const answer = await get(this.client, url, headers);
    if (!answer.ok) throw new SourceReadError(answer.error);
    const opened = answer.value;
    // If the source was closed meanwhile, the answer must be cancelled here.
    const fault = this.#isClosed ? brokeOff(opened.url.host) : this.#faultOf(opened);
    if (fault) {
      await opened.cancel();
      throw new SourceReadError(fault);
    }
    this.#connectedAt = this.#at;
    this.#passedBytes = opened.response.status === 200 ? this.#at : 0;
    return this.#take(opened, behind(opened.chunks(), this.#passedBytes, this.client.pause));
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
      // In answer to If-Range a whole file is another one, unless the server says that it is still this.
      const isSame = validatorOf(headers) === validator && contentLength(headers) === sizeBytes;
      return isSame ? undefined : CHANGED;
    }
    const range = parseContentRange(headers.get('Content-Range'));
    if (range?.total !== undefined && range.total !== sizeBytes) return CHANGED;
    if (range?.start !== this.#at || isEncoded(headers)) {
      return { kind: 'server_error', message: `The server ${url.host} sent another part than was asked for.` };
    }
    return undefined;
  }
}

/** Skips the given number of bytes. */
async function* behind(
  chunks: AsyncGenerator<Uint8Array>,
  skippedBytes: number,
  pause: () => Promise<void>,
): AsyncGenerator<Uint8Array> {
  let left = skippedBytes;
  let pausedAt = left;
  for await (const chunk of chunks) {
    const rest = chunk.subarray(Math.min(left, chunk.length));
    left -= chunk.length - rest.length;
    if (rest.length > 0) yield rest;
    if (pausedAt - left < PAUSE_BYTES) continue;
    pausedAt = left;
    await pause();
  }
}

const brokeOff = (host: string): SourceError => ({
  kind: 'unreachable',
  message: `The connection to ${host} broke off.`,
});

const incomplete = (host: string, sizeBytes: number): SourceError => ({
  kind: 'incomplete',
  message: `The server ${host} states ${sizeBytes} bytes for the recording, but what it sends ends before.`,
});
