import { afterAll, beforeAll, beforeEach, expect, it, vi } from 'vitest';
import { createKey, ensureAccount, revokeKey } from '../../client/accounts.ts';
import { type RunSql, runSqlOn } from '../../client/local/database.ts';
import { SCOPES } from '../../src/jobs/app-services.ts';
import { startWorkers } from '../helpers/workerd.ts';
import { UUID } from './service.ts';

const CLIENT_LIMIT = 20;
const KEY_LIMIT = 6;

let service: Awaited<ReturnType<typeof startWorkers>>;
let run: RunSql;
beforeAll(async () => {
  service = await startWorkers({ floodLimits: { CLIENT_FLOOD: CLIENT_LIMIT, KEY_FLOOD: KEY_LIMIT } });
  run = runSqlOn(service.db as unknown as Parameters<typeof runSqlOn>[0]);
});
afterAll(() => service?.stop());
/** Rate windows begin with the minute of the clock: no test may cross one. */
beforeEach(() => vi.waitFor(() => expect(Date.now() % 60_000).toBeLessThan(50_000), 20_000), 30_000);

async function newKey() {
  const accountId = await ensureAccount(run, { name: 'main', creditSeconds: 3600 }, Date.now());
  const { signingKey } = service;
  return createKey(run, { accountId, scopes: SCOPES, signingKey }, Date.now());
}

let clients = 0;
/** An address that no other test uses. */
const newAddress = () => `203.0.113.${++clients}`;

interface RequestOptions {
  readonly address?: string;
  readonly key?: string;
  readonly method?: string;
  readonly body?: string;
}

async function send(path: string, { address = newAddress(), key, method = 'GET', body }: RequestOptions = {}) {
  const headers: Record<string, string> = { 'CF-Connecting-IP': address };
  if (key !== undefined) headers.Authorization = `Bearer ${key}`;
  const response = await service.fetch(path, { method, headers, body });
  return { status: response.status, headers: response.headers, body: await response.text() };
}

async function statuses(count: number, path: string, sent: RequestOptions = {}): Promise<number[]> {
  const all: number[] = [];
  for (let i = 0; i < count; i++) all.push((await send(path, sent)).status);
  return all;
}

it('refuses only the address of a flooding client, before it checks the key', async () => {
  const address = newAddress();
  const before = await statuses(CLIENT_LIMIT, '/v1/test', { address });
  expect(new Set(before)).toEqual(new Set([401]));
  const refused = await send('/v1/test', { address });
  expect(refused.status).toBe(429);
  expect(refused.headers.get('Retry-After')).toBe('60');
  expect(JSON.parse(refused.body)).toEqual({
    requestId: expect.stringMatching(UUID),
    message: 'Too many requests; try again in 60 s.',
  });
  for (const path of ['/', '/openapi.json', '/v1/media/upload/x'])
    expect((await send(path, { address })).status).toBe(429);
  expect((await send('/v1/test')).status).toBe(401);
}, 30_000);

it('answers with an OpenAI error on OpenAI routes', async () => {
  const address = newAddress();
  await statuses(CLIENT_LIMIT, '/v1/models', { address });
  const refused = await send('/v1/models', { address });
  expect(refused.status).toBe(429);
  expect(JSON.parse(refused.body).error).toMatchObject({ type: 'requests', code: 'rate_limit_exceeded' });
}, 30_000);

it('counts the addresses of one IPv6 /64 network as one client', async () => {
  for (let i = 0; i < CLIENT_LIMIT; i++) await send('/v1/test', { address: `2001:db8:0:7::${i + 1}` });
  expect((await send('/v1/test', { address: '2001:db8:0:7:ffff::1' })).status).toBe(429);
  expect((await send('/v1/test', { address: '2001:db8:0:8::1' })).status).toBe(401);
}, 30_000);

it('refuses only a flooding key, before it reads its row or the body', async () => {
  const [flooding, other] = [await newKey(), await newKey()];
  const post = { method: 'POST', body: 'no JSON', key: flooding.token };
  expect(await statuses(KEY_LIMIT, '/v1/diarize', post)).toEqual(new Array(KEY_LIMIT).fill(400));
  expect(await statuses(1, '/v1/diarize', post)).toEqual([429]);
  await revokeKey(run, flooding.keyId, Date.now());
  expect(
    await statuses(1, '/v1/test', { key: flooding.token }),
    'the limit is checked before the revoked row is read',
  ).toEqual([429]);
  expect(await statuses(1, '/v1/test', { key: other.token })).toEqual([200]);
}, 30_000);

it('does not count a forged token against the key that it names', async () => {
  const { token } = await newKey();
  const forged = `${token.slice(0, -4)}AAAA`;
  expect(new Set(await statuses(KEY_LIMIT + 2, '/v1/test', { key: forged }))).toEqual(new Set([401]));
  expect(await statuses(1, '/v1/test', { key: token })).toEqual([200]);
}, 30_000);
