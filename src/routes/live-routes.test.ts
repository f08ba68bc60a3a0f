import { afterEach, describe, expect, it } from 'vitest';
import { createKey, ensureAccount } from '../../client/accounts.ts';
import { runSqlOn } from '../../client/local/database.ts';
import { startWorkers } from '../../test/helpers/workerd.ts';
import { MAX_OPEN_STREAMS } from '../jobs/live-ports.ts';
import { handshakeFault } from './live-routes.ts';

const GOOD = {
  upgrade: 'websocket',
  'sec-websocket-version': '13',
  'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
};
const fault = (headers: Record<string, string>, { isDirect = false, method = 'GET' } = {}) =>
  handshakeFault({ method, header: (name) => headers[name.toLowerCase()] }, isDirect)?.kind;
const without = (name: keyof typeof GOOD) => {
  const { [name]: _, ...rest } = GOOD;
  return rest as Record<string, string>;
};

describe('a WebSocket handshake', () => {
  it('is accepted when complete, in any letter case, and with spare bits set in the key', () => {
    for (const isDirect of [true, false]) {
      expect(fault(GOOD, { isDirect })).toBeUndefined();
      expect(fault({ ...GOOD, upgrade: 'WebSocket' }, { isDirect })).toBeUndefined();
      expect(fault({ ...GOOD, 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZR==' }, { isDirect })).toBeUndefined();
    }
  });

  it('may lack version and key behind the edge, which removes them', () => {
    expect(fault(without('sec-websocket-version'))).toBeUndefined();
    expect(fault(without('sec-websocket-key'))).toBeUndefined();
    expect(fault({ upgrade: 'websocket' })).toBeUndefined();
  });

  it('must be complete where the client connects to the runtime directly', () => {
    expect(fault(without('sec-websocket-version'), { isDirect: true })).toBe('websocket_version');
    expect(fault(without('sec-websocket-key'), { isDirect: true })).toBe('invalid');
  });

  it.each([
    [{ 'sec-websocket-version': '8' }, 'websocket_version'],
    [{ 'sec-websocket-version': '' }, 'websocket_version'],
    [{ 'sec-websocket-version': '13, 8' }, 'websocket_version'],
    [{ 'sec-websocket-key': '' }, 'invalid'],
    [{ 'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAA' }, 'invalid'],
    [{ 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ' }, 'invalid'],
    [{ 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==, dGhlIHNhbXBsZSBub25jZQ==' }, 'invalid'],
    [{ upgrade: 'h2c' }, 'upgrade_required'],
  ])('is refused with %j', (change, kind) => {
    expect(fault({ ...GOOD, ...change })).toBe(kind);
    expect(fault({ ...GOOD, ...change }, { isDirect: true })).toBe(kind);
  });

  it('is refused for HEAD, which has no connection to upgrade', () => {
    expect(fault(GOOD, { method: 'HEAD' })).toBe('upgrade_required');
  });
});

let worker: Awaited<ReturnType<typeof startWorkers>> | undefined;
afterEach(() => worker?.stop());

/** Starts a changed Worker with an account. @returns calls of POST /v1/live, and the number of streams */
async function opening(changes: Parameters<typeof startWorkers>[0]) {
  worker = await startWorkers(changes);
  const { db, signingKey, call } = worker;
  const run = runSqlOn(db);
  const accountId = await ensureAccount(run, { name: 'main', subscribe: true }, 0);
  const { token } = await createKey(run, { accountId, scopes: ['stream:write'], signingKey }, 0);
  return {
    open: () => call('POST', '/v1/live', token),
    streams: async () => (await run('SELECT id FROM live_streams')).length,
  };
}

it('opens no stream if the models are too slow for live streams', async () => {
  const { open, streams } = await opening({ pack: 'studio' });
  const answer = await open();
  expect(answer.status).toBe(403);
  expect(await answer.json()).toMatchObject({ message: expect.stringContaining('not enabled') });
  expect(await streams()).toBe(0);
});

it('opens no stream while running streams lag, and answers with Retry-After', async () => {
  const { open, streams } = await opening({ live: 'lagging-stream-front' });
  const refused = await open();
  expect(refused.status).toBe(503);
  expect(Number(refused.headers.get('Retry-After'))).toBeGreaterThan(0);
  expect(await streams()).toBe(0);
});

it('answers with the refusal even if discarding the refused stream fails', async () => {
  const { open, streams } = await opening({ live: 'undiscardable-stream-front' });
  for (let stream = 0; stream < MAX_OPEN_STREAMS; stream++) expect((await open()).status).toBe(200);
  const refused = await open();
  expect(refused.status).toBe(429);
  expect(await refused.json()).toMatchObject({ message: expect.stringContaining(`${MAX_OPEN_STREAMS} open live`) });
  expect(await streams()).toBe(MAX_OPEN_STREAMS);
});
