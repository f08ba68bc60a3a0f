import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Received {
  readonly body: { readonly jobId: string; readonly status: string; readonly output?: unknown };
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** Status of the answer; undefined if the sender closed the connection first. */
  readonly answered?: number;
}

/** Receives webhooks on this machine and records each with its answer. */
export async function startReceiver(answer: (count: number) => Promise<number> = async () => 200) {
  const received: Received[] = [];
  const server = createServer(async (request, response) => {
    try {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      const entry: { -readonly [key in keyof Received]: Received[key] } = {
        body: JSON.parse(Buffer.concat(chunks).toString()) as Received['body'],
        headers: request.headers,
      };
      received.push(entry);
      const status = await answer(received.length);
      if (request.socket.destroyed) return;
      entry.answered = status;
      response.writeHead(status).end();
    } catch {
      response.destroy(); // the sender was killed during its request
    }
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const close = (): Promise<void> => {
    server.closeAllConnections();
    return new Promise((done) => server.close(() => done()));
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, received, close };
}
