import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface TestServer {
  readonly origin: string;
  /** Every request so far: path and `Range` header. */
  readonly requests: { readonly path: string; readonly range: string | undefined }[];
  close(): Promise<void>;
}

/** A real HTTP server on loopback. */
export async function startServer(
  handler: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<TestServer> {
  const requests: TestServer['requests'] = [];
  const server: Server = createServer((request, response) => {
    requests.push({ path: request.url ?? '', range: request.headers.range });
    handler(request, response);
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    async close() {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };
}

/** Answers as a static file server with ranges and `If-Range` does (RFC 9110 §13.1.5, §14). */
export function serveRanges(
  request: IncomingMessage,
  response: ServerResponse,
  file: { readonly bytes: Uint8Array; readonly etag?: string; readonly lastModified?: string; readonly type?: string },
): void {
  const { bytes, etag, lastModified } = file;
  if (etag) response.setHeader('ETag', etag);
  if (lastModified) response.setHeader('Last-Modified', lastModified);
  response.setHeader('Content-Type', file.type ?? 'application/octet-stream');
  const match = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '');
  const pin = request.headers['if-range'];
  if (!match || (pin !== undefined && pin !== etag && pin !== lastModified)) {
    response.setHeader('Content-Length', bytes.length);
    response.end(bytes);
    return;
  }
  const start = Number(match[1]);
  const end = match[2] === '' ? bytes.length - 1 : Math.min(Number(match[2]), bytes.length - 1);
  if (start >= bytes.length) {
    response.statusCode = 416;
    response.setHeader('Content-Range', `bytes */${bytes.length}`);
    response.end();
    return;
  }
  response.statusCode = 206;
  response.setHeader('Content-Range', `bytes ${start}-${end}/${bytes.length}`);
  response.setHeader('Content-Length', end - start + 1);
  response.end(bytes.subarray(start, end + 1));
}
