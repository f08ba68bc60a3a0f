import { afterEach, expect, it, vi } from 'vitest';
import { createWebhookClient } from './webhook-client.ts';

afterEach(() => vi.unstubAllGlobals());

it.each([
  ['https://example.com/hook', 'http://127.0.0.1:9200/index/_doc', 1],
  ['https://example.com/hook', 'https://localhost/x', 1],
  ['http://127.0.0.1:9000/hook', 'http://127.0.0.1:9200/x', 2],
])('from %s a redirect to %s is asked only where loopback leads to loopback', async (from, to, requests) => {
  const asked: string[] = [];
  vi.stubGlobal('fetch', async (url: URL) => {
    asked.push(url.href);
    return new Response(null, asked.length === 1 ? { status: 307, headers: { Location: to } } : { status: 200 });
  });
  const result = await createWebhookClient({ allowLoopback: true }).post(from, new TextEncoder().encode('{}'), {});
  expect(asked).toHaveLength(requests);
  expect(result.ok).toBe(requests === 2);
});
