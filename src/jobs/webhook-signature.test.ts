import { createHmac } from 'node:crypto';
import { expect, it } from 'vitest';
import { signWebhook } from './webhook-signature.ts';

it('signs version, timestamp and raw body with the secret', async () => {
  const body = new TextEncoder().encode('{"jobId":"a","status":"succeeded"}');
  const expected = createHmac('sha256', 'whs_é').update('v0:1700000000:').update(body).digest('hex');
  expect(await signWebhook('whs_é', 1_700_000_000, body)).toBe(expected);
  expect(await signWebhook('whs_é', 1_700_000_001, body)).not.toBe(expected);
});
