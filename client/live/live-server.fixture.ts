import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type WebSocket, WebSocketServer } from 'ws';

/** What a connection has sent. */
export interface Heard {
  readonly frames: Buffer[];
  readonly texts: string[];
}

export interface LiveServer {
  readonly url: string;
  /** Bodies of POST /v1/live. */
  readonly requests: unknown[];
  readonly heard: Heard;
  close(): Promise<void>;
}

/**
 * A real WebSocket server that creates streams as the service does: the address with its token is good for one connection.
 *
 * @param answer gets every message of the client, and the connection to answer on
 * @param onConnect gets each connection, and the token that it resumes the stream with; false refuses it with 401
 */
export async function startLiveServer(
  answer: (socket: WebSocket, text: string | undefined, heard: Heard) => void,
  onConnect: (socket: WebSocket | undefined, resumeToken: string | null) => boolean = (_, token) => token === null,
): Promise<LiveServer> {
  const heard: Heard = { frames: [], texts: [] };
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
        if (isBinary) heard.frames.push(data);
        else heard.texts.push(data.toString());
        answer(socket, isBinary ? undefined : data.toString(), heard);
      });
    });
  });
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    heard,
    async close() {
      for (const socket of sockets.clients) socket.terminate();
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };
}
