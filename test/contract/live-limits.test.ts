import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connect, END_OF_STREAM, frameOf, type LiveClient } from '../helpers/live-client.ts';
import { type Answer, type ContractService, startContractService } from './service.ts';

const TOKEN_SECONDS = 6;

let service: ContractService;
beforeAll(async () => {
  service = await startContractService({ LIVE_TOKEN_SECONDS: String(TOKEN_SECONDS) });
});
afterAll(() => service?.stop());

let accounts = 0;
/** A new account for one test, because usage counts per account. */
const newAccount = (extra: object = {}) => service.newKey({ account: `limits-${++accounts}`, ...extra });
const create = (key: string, body?: object) => service.call('POST', '/v1/live', { key, body });
const read = (id: string, key: string): Promise<Answer> => service.call('GET', `/v1/live/${id}`, { key });

it('an address answers 401 when its token has expired unused; the stream ends as an unbilled error', async () => {
  const { token: key } = await newAccount();
  const { body } = await create(key, {});
  await sleep(TOKEN_SECONDS * 1000 + 100);
  await expect(connect(body.url)).rejects.toMatchObject({ status: 401 });
  await expect
    .poll(async () => (await read(body.id, key)).body, { timeout: 10_000 })
    .toMatchObject({ status: 'error', startedAt: null, completedAt: expect.any(String) });
  expect((await service.call('GET', '/v1/usage', { key })).body.totals.jobs).toBe(0);
});

describe('billing (contract §7)', () => {
  const credit = async (accountId: string) =>
    (await service.run('SELECT credit_seconds FROM accounts WHERE id = ?', accountId))[0].credit_seconds;
  const billed = async (id: string) =>
    (await service.run('SELECT kind, billed_seconds FROM usage_records WHERE job_id = ?', id)) as unknown[];
  const run = async (key: string, frames: number, finish: (client: LiveClient) => void) => {
    const { body } = await create(key, {});
    const client = await connect(body.url);
    await client.stream(Array(frames).fill(frameOf(0)), 40);
    finish(client);
    await client.closed;
    await expect.poll(async () => (await read(body.id, key)).body.status).toBe('done');
    return body.id as string;
  };

  it('bills received audio, at least 20 s, also after a disconnect; nothing without a frame', {
    timeout: 60_000,
  }, async () => {
    const { accountId, token: key } = await newAccount({ creditSeconds: 100 });
    const end = (client: LiveClient) => client.send(END_OF_STREAM);
    expect(await billed(await run(key, 0, end))).toEqual([]);
    expect(await billed(await run(key, 3, end))).toEqual([{ kind: 'live', billed_seconds: 20 }]);
    expect(await credit(accountId)).toBe(80);
    expect(await billed(await run(key, 215, end))).toEqual([{ kind: 'live', billed_seconds: 21.5 }]);
    expect(await billed(await run(key, 3, (client) => client.socket.terminate()))).toEqual([
      { kind: 'live', billed_seconds: 20 },
    ]);
    expect(await credit(accountId)).toBe(38.5);
  });

  it('records the usage of a subscriber without charging credit', async () => {
    const { accountId, token: key } = await newAccount({ creditSeconds: 0, subscribe: true });
    const id = await run(key, 1, (client) => client.send(END_OF_STREAM));
    expect(await billed(id)).toHaveLength(1);
    expect(await credit(accountId)).toBe(0);
  });
});

it('a stream ends at its time limit and is billed for the received audio', {
  timeout: 60_000,
}, async () => {
  // No frame is received before the models are loaded, which takes seconds on a busy machine.
  const connectedSeconds = 8;
  const limitedService = await startContractService({ LIVE_CONNECTED_SECONDS: String(connectedSeconds) });
  try {
    const { body } = await limitedService.call('POST', '/v1/live', { body: {} });
    const client = await connect(body.url);
    const frames = setInterval(() => client.send(frameOf(0)), 500);
    expect(await client.closed).toEqual({ code: 1000, reason: 'time limit' });
    clearInterval(frames);
    expect((await limitedService.call('GET', `/v1/live/${body.id}`)).body).toMatchObject({ status: 'done' });
    const [duration] = await limitedService.run<{ ms: number }>(
      'SELECT completed_at - started_at AS ms FROM live_streams',
    );
    expect(duration?.ms).toBeGreaterThanOrEqual(connectedSeconds * 1000);
    expect(await limitedService.run('SELECT billed_seconds FROM usage_records')).toEqual([{ billed_seconds: 20 }]);
  } finally {
    await limitedService.stop();
  }
});
