import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** One request that a webhook receiver got. */
export interface Delivery {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly atMs: number;
}

/** A real HTTP server that notes what it gets and answers as told. */
export async function startReceiver(answer: (response: ServerResponse, delivery: Delivery) => void) {
  const deliveries: Delivery[] = [];
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    const delivery = { path: request.url ?? '', headers: request.headers, body, atMs: Date.now() };
    deliveries.push(delivery);
    answer(response, delivery);
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    deliveries,
    /** Resolves with all deliveries once there are `count` of them. */
    async waitFor(count: number, timeoutMs: number): Promise<Delivery[]> {
      const deadline = Date.now() + timeoutMs;
      while (deliveries.length < count) {
        if (Date.now() > deadline) throw new Error(`${deliveries.length} of ${count} deliveries after ${timeoutMs} ms`);
        await new Promise((done) => setTimeout(done, 50));
      }
      return deliveries;
    },
    async stop() {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };
}
