import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import type { Miniflare } from '../../client/local/miniflare.ts';
import { startServer, type TestServer } from '../../test/helpers/http-server.ts';
import { startTestWorker } from '../../test/helpers/workerd.ts';

/** The client in workerd. Receivers are real; each host name resolves to one of them. */
let workerd: Miniflare;
let receiver: TestServer;
let inside: TestServer;
let redirect = '';
beforeAll(async () => {
  receiver = await startServer((_request, response) => response.writeHead(307, { Location: redirect }).end());
  inside = await startServer((_request, response) => response.end());
  workerd = await startTestWorker('webhooks', {
    outboundService: async ({ url, method }: { readonly url: string; readonly method: string }) => {
      const { hostname, origin, pathname } = new URL(url);
      const server = { 'example.com': receiver.origin, localhost: inside.origin }[hostname] ?? origin;
      const answer = await fetch(`${server}${pathname}`, { method, redirect: 'manual' });
      const location = answer.headers.get('Location');
      return new Response(null, { status: answer.status, headers: location === null ? {} : { Location: location } });
    },
  });
});
afterAll(async () => {
  await workerd?.dispose();
  await receiver?.close();
  await inside?.close();
});
beforeEach(() => {
  for (const server of [receiver, inside]) server.requests.length = 0;
});

it.each([
  ['https://example.com', 'loopback', 0],
  ['https://example.com', 'https://localhost', 0],
  ['loopback', 'https://localhost', 1],
  ['loopback', 'loopback', 1],
])('follows a redirect from %s to %s only within loopback', async (from, to, followed) => {
  redirect = `${to === 'loopback' ? inside.origin : to}/index/_doc`;
  const url = `${from === 'loopback' ? receiver.origin : from}/hook`;
  const answer = await workerd.dispatchFetch('http://workerd/', { method: 'POST', body: url });
  expect(await answer.json()).toMatchObject({ ok: followed === 1 });
  expect([receiver.requests.length, inside.requests.length]).toEqual([1, followed]);
});
