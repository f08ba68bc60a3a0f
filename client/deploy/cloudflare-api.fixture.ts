import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { vi } from 'vitest';

/** What Cloudflare's API answers; fields of its envelope that are missing say that nothing was found. */
export interface ApiAnswer {
  readonly status: number;
  readonly body?: object;
}

/**
 * A server in place of Cloudflare's API for the wrangler of this process, with an account `account`. Undefined from
 * `answer` is a 404.
 *
 * @returns stops it, and takes back the environment variables that point to it
 */
export async function startCloudflareApi(
  answer: (request: IncomingMessage, body: string) => ApiAnswer | undefined,
): Promise<() => void> {
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const { status, body } = answer(request, Buffer.concat(parts).toString()) ?? { status: 404 };
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
