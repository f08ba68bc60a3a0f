import { expect, it } from 'vitest';
import { signApiKey } from './api-keys.ts';
import { createStreamTokens, deriveWebhookSecret } from './signed-tokens.ts';

const SIGNING_KEY = Buffer.alloc(32, 7).toString('base64');
const OTHER_KEY = Buffer.alloc(32, 8).toString('base64');
const NOW = 1_800_000_000_000;
const tokens = createStreamTokens({ signingKey: SIGNING_KEY });

it('is valid only for its stream, kind and time', async () => {
  const token = await tokens.sign('connect', 'one', NOW + 1500);
  expect(await tokens.verify('connect', token, 'one', NOW)).toBe(true);
  expect(await tokens.verify('connect', token, 'two', NOW)).toBe(false);
  expect(await tokens.verify('resume', token, 'one', NOW)).toBe(false);
  expect(await tokens.verify('connect', token, 'one', NOW + 2000)).toBe(false);
  expect(await tokens.sign('connect', 'one', NOW + 1500)).not.toBe(token);
});

it('is accepted if the previous signing key signed it', async () => {
  const rotated = createStreamTokens({ signingKey: OTHER_KEY, previousSigningKey: SIGNING_KEY });
  expect(await rotated.verify('resume', await tokens.sign('resume', 'one', NOW + 1500), 'one', NOW)).toBe(true);
  expect(await tokens.verify('resume', await rotated.sign('resume', 'one', NOW + 1500), 'one', NOW)).toBe(false);
});

it('is refused if it has another key or format, or was changed', async () => {
  const token = await tokens.sign('resume', 'one', NOW + 1500);
  const [head, body, mac] = token.split('.') as [string, string, string];
  const bare = Buffer.from('{"alg":"none","typ":"resume+jwt"}').toString('base64url');
  const claims = { accountId: 'one', keyId: 'one', scopes: [], issuedAt: NOW, expiresAt: NOW + 5000 };
  const others = [
    await createStreamTokens({ signingKey: OTHER_KEY }).sign('resume', 'one', NOW + 1500),
    await signApiKey({ ...claims, signingKey: SIGNING_KEY }),
    `${head}.${body}.${mac.slice(0, -2)}AA`,
    `${bare}.${body}.`,
    `${bare}.${body}.${mac}`,
    '\u0000'.repeat(64),
    'é'.repeat(64),
    '',
    '..',
  ];
  for (const other of others) expect(await tokens.verify('resume', other, 'one', NOW), other).toBe(false);
});

const KEY = Buffer.alloc(32, 7).toString('base64');

it('derives a different, stable secret for each account and version', async () => {
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
