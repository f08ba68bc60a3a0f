import { expect, it, vi } from 'vitest';
import { createApp } from '../app.ts';
import type { AppServices, Principal } from '../jobs/app-services.ts';

const noBytes = async () => new ArrayBuffer(0);
const assets = {
  docs: { version: '1', script: noBytes, styles: noBytes, licences: noBytes },
  playground: { page: '', styles: '', script: '', microphoneFrames: '' },
};
const rateLimits = { post: 9, get: 9 };
const account = { id: 'a', name: 'main', subscribed: true, creditSeconds: 0, rateLimits };
const principal: Principal = { account, keyId: 'k', scopes: new Set(['stream:write'] as const) };

it.each([
  [true, 200],
  [false, 403],
])('opens streams only where the models can follow them (%s)', async (liveStreams, status) => {
  const create = vi.fn(async () => ({ ok: true, value: { id: 'i', token: 't' } }));
  const services = {
    keys: { verify: async () => principal },
    quota: { count: async () => ({ count: 1, resetMs: 1000 }) },
    live: { create },
    policy: { liveStreams },
    log: () => undefined,
  } as unknown as AppServices;
  const app = createApp(() => services, assets);
  const context = { waitUntil: () => undefined, passThroughOnException: () => undefined, props: {} };
  const headers = { Authorization: 'Bearer key' };
  const answer = await app.request('/v1/live', { method: 'POST', headers }, {}, context);
  expect(answer.status).toBe(status);
  expect(create).toHaveBeenCalledTimes(liveStreams ? 1 : 0);
  if (!liveStreams) expect(await answer.json()).toMatchObject({ message: expect.stringContaining('not enabled') });
});
