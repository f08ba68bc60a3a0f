import { createReadStream, statSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { listen } from '../bench-service.ts';

/** Behaviour of a server of a recording; without faults by default. */
export interface OriginOptions {
  /** If false, answers a range request with the whole file. */
  readonly hasRanges?: boolean;
  /** If false, sends no ETag. */
  readonly hasValidator?: boolean;
  /** If false, sends no Content-Length and serves no ranges. */
  readonly hasLength?: boolean;
  /** Bytes of the file after which each connection is closed. */
  readonly cutEveryBytes?: number;
  readonly bytesPerSecond?: number;
  /** File that replaces the first one when half of it was sent; all connections are then closed. */
  readonly changesTo?: string;
  /** Repeats the file forever, without a length. */
  readonly isEndless?: boolean;
  /** Sends the headers of a radio station. */
  readonly isRadio?: boolean;
}

export interface Origin {
  readonly url: string;
  /** Requests so far. */
  readonly requests: () => number;
  /** Number of answers being sent. */
  readonly openAnswers: () => number;
  close(): Promise<void>;
}

const READ_BYTES = 1 << 18;
const WRITES_PER_SECOND = 10;

/** Serves a file on a free loopback port. */
export function serveOrigin(path: string, options: OriginOptions = {}): Promise<Origin> {
  const site = new Site(path, options);
  const server = createServer(
    (request, response) => void site.answer(request, response).catch(() => response.destroy()),
  );
  return listen(server).then((listening) => ({
    ...listening,
    requests: () => site.requests,
    openAnswers: () => site.open.size,
  }));
}

class Site {
  requests = 0;
  readonly open = new Set<ServerResponse>();
  #version = 0;
  #sentBytes = 0;

  constructor(
    private path: string,
    private readonly options: OriginOptions,
  ) {}

  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.requests++;
    const { hasValidator = true, hasLength = true, isEndless = false, isRadio = false } = this.options;
    const hasRanges = (this.options.hasRanges ?? true) && hasLength && !isEndless;
    const sizeBytes = statSync(this.path).size;
    const etag = `"bench-${sizeBytes}-${this.#version}"`;
    const isOther = request.headers['if-range'] !== undefined && request.headers['if-range'] !== etag;
    const range = hasRanges && !isOther ? /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '') : null;
    const start = range ? Number(range[1]) : 0;
    const end = range?.[2] ? Math.min(Number(range[2]), sizeBytes - 1) : sizeBytes - 1;
    if (start > end) {
      response.writeHead(416, { 'Content-Range': `bytes */${sizeBytes}` }).end();
      return;
    }
    response.writeHead(range ? 206 : 200, {
      'Content-Type': isRadio ? 'audio/mpeg' : 'application/octet-stream',
      ...(hasRanges && { 'Accept-Ranges': 'bytes' }),
      ...(hasValidator && !isEndless && { ETag: etag }),
      ...(hasLength && !isEndless && { 'Content-Length': end - start + 1 }),
      ...(range && { 'Content-Range': `bytes ${start}-${end}/${sizeBytes}` }),
      ...(isRadio && { 'icy-name': 'bench' }),
    });
    this.open.add(response);
    response.once('close', () => this.open.delete(response));
    await this.#send(response, isEndless ? repeated(this.path) : partsOf(this.path, start, end), sizeBytes);
  }

  async #send(response: ServerResponse, parts: AsyncIterable<Buffer>, sizeBytes: number): Promise<void> {
    const { bytesPerSecond, cutEveryBytes = Number.POSITIVE_INFINITY } = this.options;
    const chunkBytes = bytesPerSecond ? Math.ceil(bytesPerSecond / WRITES_PER_SECOND) : READ_BYTES;
    let sent = 0;
    for await (const part of parts) {
      for (let at = 0; at < part.length; ) {
        const chunk = part.subarray(at, at + Math.min(chunkBytes, cutEveryBytes - sent));
        if (response.destroyed) return;
        if (!response.write(chunk)) await drained(response);
        at += chunk.length;
        sent += chunk.length;
        if (this.#isChanging(chunk.length, sizeBytes)) return;
        // Unlike `destroy`, this sends buffered data first.
        if (sent >= cutEveryBytes) return response.socket?.destroySoon();
        if (bytesPerSecond) await new Promise((wake) => setTimeout(wake, 1000 / WRITES_PER_SECOND));
      }
    }
    response.end();
  }

  #isChanging(sentBytes: number, sizeBytes: number): boolean {
    const { changesTo } = this.options;
    this.#sentBytes += sentBytes;
    if (changesTo === undefined || this.#version > 0 || this.#sentBytes < sizeBytes / 2) return false;
    this.#version = 1;
    this.path = changesTo;
    for (const response of this.open) response.socket?.destroySoon();
    return true;
  }
}

function drained(response: ServerResponse): Promise<void> {
  return new Promise((done) => {
    const end = (): void => {
      response.off('drain', end);
      response.off('close', end);
      done();
    };
    response.on('drain', end);
    response.on('close', end);
  });
}

function partsOf(path: string, start: number, end: number): AsyncIterable<Buffer> {
  return createReadStream(path, { start, end, highWaterMark: READ_BYTES });
}

async function* repeated(path: string): AsyncGenerator<Buffer> {
  for (;;) yield* createReadStream(path, { highWaterMark: READ_BYTES }) as AsyncIterable<Buffer>;
}
