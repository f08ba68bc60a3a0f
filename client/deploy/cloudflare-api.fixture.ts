import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { vi } from 'vitest';

/** Answer of the server; `body` overrides members of an empty envelope. */
export interface ApiAnswer {
  readonly status: number;
  readonly body?: object;
}

/**
 * Starts a server that replaces Cloudflare's API with the account `account`, and points wrangler to it.
 *
 * @param answer returns the answer to a request; undefined means 404
 * @returns a function that stops the server and restores the environment variables
 */
export async function startCloudflareApi(
  answer: (request: IncomingMessage, body: string) => ApiAnswer | undefined,
): Promise<() => void> {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { status, body } = answer(request, Buffer.concat(chunks).toString()) ?? { status: 404 };
    response.statusCode = status;
    response.end(JSON.stringify({ success: status === 200, errors: [], messages: [], result: null, ...body }));
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  vi.stubEnv('CLOUDFLARE_API_BASE_URL', `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  vi.stubEnv('CLOUDFLARE_API_TOKEN', 'token');
  vi.stubEnv('CLOUDFLARE_ACCOUNT_ID', 'account');
  return () => {
    vi.unstubAllEnvs();
    server.close();
  };
}
