import { createHmac } from 'node:crypto';
import { expect, it } from 'vitest';
import { signedContent, signingVersions, signWebhook, WEBHOOK_SECRET_GRACE_MS } from './webhook-signature.ts';

it('signs version, timestamp and raw body with the secret', async () => {
  const body = new TextEncoder().encode('{"jobId":"a","status":"succeeded"}');
  const expected = createHmac('sha256', 'whs_é').update('v0:1700000000:').update(body).digest('hex');
  const signed = signedContent(1_700_000_000, [body.subarray(0, 9), body.subarray(9)]);
  expect(signed.body).toEqual(body);
  expect(await signWebhook('whs_é', signed.content)).toBe(expected);
  expect(await signWebhook('whs_é', signedContent(1_700_000_001, [body]).content)).not.toBe(expected);
});

it('also signs with the previous secret for a day after a rotation', () => {
  expect(signingVersions(1, null, 5)).toEqual([1]);
  expect(signingVersions(2, 1000, 1000)).toEqual([2, 1]);
  expect(signingVersions(2, 1000, 1000 + WEBHOOK_SECRET_GRACE_MS - 1)).toEqual([2, 1]);
  expect(signingVersions(2, 1000, 1000 + WEBHOOK_SECRET_GRACE_MS)).toEqual([2]);
});
