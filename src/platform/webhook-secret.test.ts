import { expect, it } from 'vitest';
import { deriveWebhookSecret } from './webhook-secret.ts';

const KEY = Buffer.alloc(32, 7).toString('base64');

it('gives every account and version a secret of its own, always the same', async () => {
  const secret = await deriveWebhookSecret(KEY, 'a', 1);
  expect(secret).toMatch(/^whsec_[0-9a-f]{64}$/);
  expect(await deriveWebhookSecret(KEY, 'a', 1)).toBe(secret);
  const others = [
    await deriveWebhookSecret(KEY, 'b', 1),
    await deriveWebhookSecret(KEY, 'a', 2),
    await deriveWebhookSecret(Buffer.alloc(32, 8).toString('base64'), 'a', 1),
  ];
  expect(new Set([secret, ...others]).size).toBe(4);
});
