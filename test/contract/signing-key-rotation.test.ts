import { afterAll, beforeAll, expect, it } from 'vitest';
import { createKey } from '../../client/accounts.ts';
import { SCOPES } from '../../src/jobs/app-services.ts';
import { importSigningKey, signCursor, signTicket } from '../../src/platform/signed-tokens.ts';
import { type ContractService, startContractService } from './service.ts';

/** The signing key before the rotation. */
const PREVIOUS = Buffer.alloc(32, 7).toString('base64');
const UNKNOWN = Buffer.alloc(32, 8).toString('base64');

let service: ContractService;
beforeAll(async () => {
  service = await startContractService({ SIGNING_KEY_PREVIOUS: PREVIOUS });
});
afterAll(() => service?.stop());

const keySignedBy = async (signingKey: string) =>
  (await createKey(service.run, { accountId: service.main.accountId, scopes: SCOPES, signingKey }, Date.now())).token;

it('accepts API keys signed with the previous key and refuses those of an unknown key', async () => {
  const status = async (key: string) => (await service.call('GET', '/v1/test', { key })).status;
  expect(await status(await keySignedBy(PREVIOUS))).toBe(200);
  expect(await status(service.main.token)).toBe(200);
  expect(await status(await keySignedBy(UNKNOWN))).toBe(401);
});

it('accepts tickets and cursors of the previous key and refuses those of an unknown key', async () => {
  const { accountId } = service.main;
  const answers = async (signingKey: string) => {
    const ticket = { accountId, name: 'a' };
    const upload = await signTicket('upload', ticket, Date.now() + 60_000, await importSigningKey(signingKey));
    const cursor = await signCursor(signingKey, { accountId }, { createdAt: 1, id: 'x' });
    const body = new Uint8Array([1]);
    return [
      (await service.call('PUT', `/v1/media/upload/${upload}`, { key: null, body })).status,
      (await service.call('GET', `/v2/jobs?cursor=${cursor}`)).status,
    ];
  };
  expect(await answers(PREVIOUS)).toEqual([200, 200]);
  expect(await answers(UNKNOWN)).toEqual([401, 400]);
});

it('signs only with the current key', async () => {
  const { body } = await service.call('POST', '/v1/media/input', {
    key: await keySignedBy(PREVIOUS),
    body: { url: 'media://a' },
  });
  const [header, payload, signature] = body.url.split('/').pop().split('.');
  const isSignedBy = async (signingKey: string) => {
    const bytes = Buffer.from(signingKey, 'base64');
    const key = await crypto.subtle.importKey('raw', bytes, { name: 'HMAC', hash: 'SHA-256' }, false, ['verify']);
    const signed = new TextEncoder().encode(`${header}.${payload}`);
    return crypto.subtle.verify('HMAC', key, Buffer.from(signature, 'base64url'), signed);
  };
  expect([await isSignedBy(service.signingKey), await isSignedBy(PREVIOUS)]).toEqual([true, false]);
});
