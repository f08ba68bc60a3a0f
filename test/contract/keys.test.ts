import { SignJWT, UnsecuredJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { revokeKey } from '../../client/accounts.ts';
import { SCOPES, type Scope } from '../../src/jobs/app-services.ts';
import { type ContractService, startContractService } from './service.ts';

let service: ContractService;
beforeAll(async () => {
  service = await startContractService();
});
afterAll(() => service?.stop());

const status = async (key: string | null, path = '/v1/test', method = 'GET', body?: object) =>
  (await service.call(method, path, { key, body })).status;

/** A token with the claims of a real key and the given changes. */
async function forge(change: {
  claims?: Record<string, unknown>;
  alg?: string;
  typ?: string;
  secret?: Uint8Array;
}): Promise<string> {
  const { accountId, keyId } = service.main;
  const claims = {
    iss: 'rollcall',
    aud: 'rollcall:api',
    sub: accountId,
    jti: keyId,
    iat: Math.floor(Date.now() / 1000),
    scope: 'jobs:read jobs:write',
    ...change.claims,
  };
  return new SignJWT(claims)
    .setProtectedHeader({ alg: change.alg ?? 'HS256', typ: change.typ ?? 'JWT' })
    .sign(change.secret ?? Buffer.from(service.signingKey, 'base64'));
}

describe('a key works', () => {
  it('and GET /v1/test answers 200', async () => {
    const answer = await service.call('GET', '/v1/test');
    expect(answer.status).toBe(200);
    expect(answer.body).toEqual({ status: 'OK', message: expect.stringMatching(/\w/) });
    expect(await service.call('GET', '/v1/test/')).toMatchObject({ status: 200, body: answer.body });
    // No cache may store an answer to a key.
    expect(answer.headers.get('Cache-Control')).toBe('no-store');
    expect((await service.call('GET', '/v1/test', { key: 'bad' })).headers.get('Cache-Control')).toBe('no-store');
  });

  it('without any scope only at /v1/test', async () => {
    const { token } = await service.newKey({ scopes: [] });
    expect(await status(token)).toBe(200);
    expect(await status(token, '/v1/jobs/x')).toBe(403);
  });

  it('while another key of the account is revoked', async () => {
    const old = await service.newKey({ account: 'rotating' });
    const next = await service.newKey({ account: 'rotating' });
    expect([await status(old.token), await status(next.token)]).toEqual([200, 200]);
    await revokeKey(service.run, old.keyId, Date.now());
    expect([await status(old.token), await status(next.token)]).toEqual([401, 200]);
  });

  it('until it expires', async () => {
    const { token } = await service.newKey({ expiresAt: Date.now() + 3600_000 });
    expect(await status(token)).toBe(200);
    const { token: past } = await service.newKey({ expiresAt: Date.now() - 2000 });
    expect(await status(past)).toBe(401);
  });

  it('with any letter case of the word Bearer', async () => {
    const headers = { Authorization: `bearer ${service.main.token}` };
    expect((await service.call('GET', '/v1/test', { key: null, headers })).status).toBe(200);
  });

  it('and GET /v1/voiceprint distinguishes it from a bad key', async () => {
    expect([404, 405]).toContain(await status(service.main.token, '/v1/voiceprint'));
    expect(await status('bad', '/v1/voiceprint')).toBe(401);
  });

  it('and is a JWT with account and key id', () => {
    const [header, payload] = service.main.token.split('.').map((part) => Buffer.from(part, 'base64url').toString());
    expect(JSON.parse(header)).toEqual({ alg: 'HS256', typ: 'JWT' });
    expect(JSON.parse(payload)).toMatchObject({ sub: service.main.accountId, jti: service.main.keyId });
  });
});

describe('scopes', () => {
  it('jobs:write only creates, jobs:read only reads, media:write only uploads', async () => {
    const tokenWith = async (...scopes: Scope[]) => (await service.newKey({ scopes })).token;
    const calls = [
      ['/v1/diarize', 'POST', { url: 'http://127.0.0.1:9/a.wav' }],
      ['/v1/jobs/unknown', 'GET', undefined],
      ['/v1/media/input', 'POST', { url: 'media://x' }],
    ] as const;
    const statuses = async (token: string) =>
      Promise.all(calls.map(([path, method, body]) => status(token, path, method, body)));
    expect(await statuses(await tokenWith('jobs:write'))).toEqual([200, 403, 403]);
    expect(await statuses(await tokenWith('jobs:read'))).toEqual([403, 404, 403]);
    expect(await statuses(await tokenWith('media:write'))).toEqual([403, 403, 201]);
    expect(await statuses(await tokenWith('media:read', 'stream:read', 'stream:write'))).toEqual([403, 403, 403]);
  });

  it.each<[Scope, string, string]>([
    ['jobs:read', 'GET', '/v1/jobs'],
    ['jobs:read', 'GET', '/v2/jobs'],
    ['jobs:read', 'GET', '/v1/jobs/unknown'],
    ['jobs:read', 'GET', '/v1/jobs/unknown/events'],
    ['jobs:read', 'GET', '/v1/jobs/unknown/output'],
    ['jobs:read', 'GET', '/v1/usage'],
    ['jobs:write', 'POST', '/v1/jobs/unknown/cancel'],
    ['jobs:write', 'DELETE', '/v1/jobs/unknown'],
    ['jobs:write', 'POST', '/v1/diarize'],
    ['jobs:write', 'POST', '/v1/identify'],
    ['jobs:write', 'POST', '/v1/voiceprint'],
    ['media:read', 'POST', '/v1/media/output'],
    ['media:write', 'POST', '/v1/media/input'],
    ['stream:read', 'GET', '/v1/live/unknown'],
    ['stream:write', 'POST', '/v1/live'],
  ])('only %s allows %s %s', async (scope, method, path) => {
    const statusWith = async (scopes: readonly Scope[]) =>
      status((await service.newKey({ scopes })).token, path, method, method === 'POST' ? {} : undefined);
    expect(await statusWith(SCOPES.filter((other) => other !== scope))).toBe(403);
    expect([200, 201, 400, 404]).toContain(await statusWith([scope]));
  });

  it('are those of the stored row, not those of the token', async () => {
    const { keyId } = await service.newKey({ scopes: ['jobs:read'] });
    const token = await forge({ claims: { jti: keyId, scope: 'jobs:read jobs:write' } });
    expect(await status(token, '/v1/diarize', 'POST', { url: 'http://127.0.0.1:9/a.wav' })).toBe(403);
  });
});

describe('a bad key is refused: 401', () => {
  it('except a correctly signed token, which proves the cases below', async () => {
    expect(await status(await forge({}))).toBe(200);
    const aheadSeconds = 30; // allowed clock skew
    expect(await status(await forge({ claims: { iat: Math.floor(Date.now() / 1000) + aheadSeconds } }))).toBe(200);
  });

  it.each([
    ['no token', ''],
    ['not a JWT', 'secret'],
    ['three dots', '..'],
    ['a very long token', 'a'.repeat(5000)],
  ])('%s', async (_name, token) => {
    expect(await status(token)).toBe(401);
  });

  it.each([
    ['another scheme', () => `Token ${service.main.token}`],
    ['a key without a scheme', () => service.main.token],
    ['a scheme without a key', () => 'Bearer'],
  ])('%s: the message explains how to send a key', async (_name, value) => {
    const answer = await service.call('GET', '/v1/test', { key: null, headers: { Authorization: value() } });
    expect(answer).toMatchObject({ status: 401, body: { message: expect.stringContaining('Authorization: Bearer') } });
    // RFC 6750 §3.1: no error code where no bearer token was sent.
    expect(answer.headers.get('WWW-Authenticate')).toBe('Bearer realm="rollcall"');
  });

  it('a revoked or expired key, with a message that names both causes', async () => {
    const { token, keyId } = await service.newKey();
    await revokeKey(service.run, keyId, Date.now());
    const { token: expired } = await service.newKey({ expiresAt: Date.now() - 2000 });
    for (const key of [token, expired]) {
      const answer = await service.call('GET', '/v1/test', { key });
      expect(answer).toMatchObject({ status: 401, body: { message: expect.stringMatching(/revoked or has expired/) } });
      expect(answer.headers.get('WWW-Authenticate')).toBe('Bearer realm="rollcall", error="invalid_token"');
    }
  });

  it.each([
    ['another secret', { secret: new Uint8Array(32).fill(1) }],
    ['another algorithm with the same secret', { alg: 'HS512' }],
    ['another type', { typ: 'upload+jwt' }],
    ['another issuer', { claims: { iss: 'someone' } }],
    ['another audience', { claims: { aud: 'rollcall:media' } }],
    ['an unknown key id', { claims: { jti: 'f3d3d1c4-0000-4000-8000-000000000000' } }],
    ['another account', { claims: { sub: 'f3d3d1c4-0000-4000-8000-000000000000' } }],
    ['no account', { claims: { sub: undefined } }],
    ['no key id', { claims: { jti: undefined } }],
    ['no scopes', { claims: { scope: undefined } }],
    ['an expiry in the past', { claims: { exp: 1_600_000_000 } }],
    ['a time of issue in the future', { claims: { iat: Math.floor(Date.now() / 1000) + 3600 } }],
  ])('%s', async (_name, change) => {
    expect(await status(await forge(change))).toBe(401);
  });

  it('a changed payload', async () => {
    const [header, payload, signature] = service.main.token.split('.');
    const claims = { ...JSON.parse(Buffer.from(payload, 'base64url').toString()), scope: 'jobs:read' };
    const changed = Buffer.from(JSON.stringify(claims)).toString('base64url');
    expect(await status(`${header}.${changed}.${signature}`)).toBe(401);
  });

  it('padding after the signature', async () => {
    expect(await status(`${service.main.token}=`)).toBe(401);
  });

  it('alg none', async () => {
    const { accountId, keyId } = service.main;
    const token = new UnsecuredJWT({ scope: 'jobs:read' })
      .setIssuer('rollcall')
      .setAudience('rollcall:api')
      .setSubject(accountId)
      .setJti(keyId)
      .setIssuedAt()
      .encode();
    expect(await status(token)).toBe(401);
  });

  it('an upload ticket', async () => {
    const { body } = await service.call('POST', '/v1/media/input', { body: { url: 'media://x' } });
    expect(await status(body.url.split('/').pop())).toBe(401);
  });
});

it('no key or signing key appears in the log', async () => {
  await service.call('GET', `/v1/${service.main.token}`);
  await expect.poll(() => service.log()).toContain('"event":"request"');
  expect(service.log()).not.toContain(service.main.token);
  expect(service.log()).not.toContain(service.signingKey);
});
