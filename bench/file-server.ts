import { createReadStream, statSync } from 'node:fs';
import { createServer, type Server } from 'node:http';

export interface FileServer {
  readonly url: string;
  /** Requests answered so far. */
  readonly requests: () => number;
  close(): Promise<void>;
}

/** Serves one file on a free loopback port, with byte ranges and an ETag, as a storage service would. */
export function serveFile(path: string): Promise<FileServer> {
  const size = statSync(path).size;
  const etag = `"bench-${size}"`;
  let count = 0;
  const server = createServer((request, response) => {
    count++;
    const headers = { 'Accept-Ranges': 'bytes', ETag: etag, 'Content-Type': 'application/octet-stream' };
    const range = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '');
    const start = range ? Number(range[1]) : 0;
    const end = range?.[2] ? Math.min(Number(range[2]), size - 1) : size - 1;
    if (start > end) {
      response.writeHead(416, { 'Content-Range': `bytes */${size}` }).end();
      return;
    }
    response.writeHead(range ? 206 : 200, {
      ...headers,
      'Content-Length': end - start + 1,
      ...(range ? { 'Content-Range': `bytes ${start}-${end}/${size}` } : {}),
    });
    if (request.method === 'HEAD') response.end();
    else createReadStream(path, { start, end }).pipe(response);
  });
  return listen(server).then((listening) => ({ ...listening, requests: () => count }));
}

/** Starts a server on a free loopback port; closing it ends its open connections. */
export function listen(server: Server): Promise<Pick<FileServer, 'url' | 'close'>> {
  return new Promise((done, refuse) => {
    server.once('error', refuse);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      const port = typeof address === 'object' && address ? address.port : 0;
      const close = (): Promise<void> =>
        new Promise((closed) => {
          server.close(() => closed());
          server.closeAllConnections();
        });
      done({ url: `http://127.0.0.1:${port}/recording`, close });
    });
  });
}
