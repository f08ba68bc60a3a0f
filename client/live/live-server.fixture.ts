import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type WebSocket, WebSocketServer } from 'ws';

/** Messages received from the client. */
export interface Received {
  readonly frames: Buffer[];
  readonly texts: string[];
}

export interface LiveServer {
  readonly url: string;
  /** Bodies of POST /v1/live. */
  readonly requests: unknown[];
  readonly received: Received;
  close(): Promise<void>;
}

/**
 * Starts a WebSocket server that creates streams like the service: each address can be used for one connection.
 *
 * @param answer called for every message of the client
 * @param onConnect called without a socket before a connection resumes a stream; false refuses it with 401. Called
 *   again with the socket of every connection
 */
export async function startLiveServer(
  answer: (socket: WebSocket, text: string | undefined, received: Received) => void,
  onConnect: (socket: WebSocket | undefined, resumeToken: string | null) => boolean = (_, token) => token === null,
): Promise<LiveServer> {
  const received: Received = { frames: [], texts: [] };
  const requests: unknown[] = [];
  const tokens = new Set<string>();
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    requests.push(JSON.parse(Buffer.concat(chunks).toString()));
    const token = `t${requests.length}`;
    tokens.add(token);
    const address = `ws://127.0.0.1:${(server.address() as AddressInfo).port}/v1/live/s?token=${token}`;
    response
      .writeHead(200, { 'Content-Type': 'application/json' })
      .end(JSON.stringify({ id: `s-${token}`, url: address }));
  });
  const sockets = new WebSocketServer({ noServer: true });
  server.on('upgrade', (request, stream, head) => {
    const query = new URL(request.url ?? '/', 'http://x').searchParams;
    const resumeToken = query.get('resume');
    const isGood = resumeToken === null ? tokens.delete(query.get('token') ?? '') : onConnect(undefined, resumeToken);
    if (!isGood) {
      stream.end('HTTP/1.1 401 Unauthorized\r\nConnection: close\r\n\r\n');
      return;
    }
    sockets.handleUpgrade(request, stream, head, (socket) => {
      onConnect(socket, resumeToken);
      socket.on('message', (data: Buffer, isBinary) => {
        if (isBinary) received.frames.push(data);
        else received.texts.push(data.toString());
        answer(socket, isBinary ? undefined : data.toString(), received);
      });
    });
  });
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    received,
    async close() {
      for (const socket of sockets.clients) socket.terminate();
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };
}
