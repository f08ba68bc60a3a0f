import { expect, it } from 'vitest';
import { get, type HttpClient } from './http-client.ts';

function clientOf(locations: readonly string[], requestedUrls: string[]): HttpClient {
  return {
    allowLoopback: true,
    headersTimeoutMs: 1000,
    stallTimeoutMs: 1000,
    backoffMs: [],
    pause: async () => undefined,
    async fetch(url) {
      const location = locations[requestedUrls.push(url) - 1];
      return new Response(
        null,
        location === undefined ? { status: 200 } : { status: 302, headers: { Location: location } },
      );
    },
  };
}

it('bypasses the cache, also for redirects', async () => {
  const modes: (string | undefined)[] = [];
  const fetch: HttpClient['fetch'] = async (_url, { cache }) => {
    modes.push(cache);
    return new Response(null, modes.length === 1 ? { status: 302, headers: { Location: '/b' } } : { status: 200 });
  };
  await get({ ...clientOf([], []), fetch }, 'https://example.com/a.wav', {});
  expect(modes).toEqual(['no-store', 'no-store']);
});

it('refuses redirects from other servers into loopback even if loopback is allowed', async () => {
  for (const locations of [['http://127.0.0.1:9200/_shutdown'], ['https://example.org/b', 'http://localhost/x']]) {
    const requestedUrls: string[] = [];
    const result = await get(clientOf(locations, requestedUrls), 'https://example.com/a.wav', {});
    expect(result).toMatchObject({ ok: false, error: { kind: 'private_address' } });
    expect(requestedUrls).toHaveLength(locations.length);
  }
  const requestedUrls: string[] = [];
  const result = await get(clientOf(['http://127.0.0.1:9000/b'], requestedUrls), 'http://localhost:9000/a.wav', {});
  expect(result.ok).toBe(true);
  expect(requestedUrls).toHaveLength(2);
});
