import { expect, it } from 'vitest';
import { get, type HttpClient } from './http-client.ts';

function clientOf(locations: readonly string[], asked: string[]): HttpClient {
  return {
    allowLoopback: true,
    headersTimeoutMs: 1000,
    stallTimeoutMs: 1000,
    backoffMs: [],
    pause: async () => undefined,
    async fetch(url) {
      const location = locations[asked.push(url) - 1];
      return new Response(
        null,
        location === undefined ? { status: 200 } : { status: 302, headers: { Location: location } },
      );
    },
  };
}

it('leaves no copy of a recording in the cache between', async () => {
  const modes: (string | undefined)[] = [];
  const fetch: HttpClient['fetch'] = async (_url, { cache }) => {
    modes.push(cache);
    return new Response(null, modes.length === 1 ? { status: 302, headers: { Location: '/b' } } : { status: 200 });
  };
  await get({ ...clientOf([], []), fetch }, 'https://example.com/a.wav', {});
  expect(modes).toEqual(['no-store', 'no-store']);
});

it('lets no server outside redirect into loopback, also where loopback is open', async () => {
  for (const locations of [['http://127.0.0.1:9200/_shutdown'], ['https://example.org/b', 'http://localhost/x']]) {
    const asked: string[] = [];
    const result = await get(clientOf(locations, asked), 'https://example.com/a.wav', {});
    expect(result).toMatchObject({ ok: false, error: { kind: 'private_address' } });
    expect(asked).toHaveLength(locations.length);
  }
  const asked: string[] = [];
  const result = await get(clientOf(['http://127.0.0.1:9000/b'], asked), 'http://localhost:9000/a.wav', {});
  expect(result.ok).toBe(true);
  expect(asked).toHaveLength(2);
});
