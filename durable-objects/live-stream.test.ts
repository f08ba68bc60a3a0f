import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createKey, ensureAccount } from '../client/accounts.ts';
import { type RunSql, runSqlOn } from '../client/local/database.ts';
import { startWorkers } from '../test/helpers/workerd.ts';
import type { TestedLiveStream } from '../test/workers/tested-objects.ts';

/**
 * The object of a live stream in workerd with the real Worker, after the platform has given up its alarm.
 */

const HALF_HOUR_MS = 30 * 60_000;

let worker: Awaited<ReturnType<typeof startWorkers>>;
let run: RunSql;
let key: string;
let objects: (name: string) => TestedLiveStream;
beforeAll(async () => {
  worker = await startWorkers({ live: 'live-stream-front', hasModels: true });
  run = runSqlOn(worker.db);
  objects = await worker.objects<TestedLiveStream>('LIVE_STREAM');
  const accountId = await ensureAccount(run, { name: 'main', subscribe: true }, 0);
  const { signingKey } = worker;
  key = (await createKey(run, { accountId, scopes: ['stream:write'], signingKey }, 0)).token;
});
afterAll(() => worker?.stop());

async function openStream() {
  const { id, url } = (await (await worker.call('POST', '/v1/live', key)).json()) as { id: string; url: string };
  const object = () => objects(id);
  const status = async () => (await run('SELECT status FROM live_streams WHERE id = ?', id))[0]!.status;
  return { id, url, object, status };
}

describe('a stream whose object has lost its alarm', () => {
  it('ends with a sweep half an hour later if its connection is lost', async () => {
    const { id, url, object, status } = await openStream();
    await worker.connect(url);
    await object().loseAlarm();
    await object()
      .loseMemory()
      .catch(() => undefined);
    expect(await object().storedKeys()).toContain('stream');
    await worker.sweep();
    expect(await status()).toBe('running');
    await run('UPDATE live_streams SET started_at = started_at - ? WHERE id = ?', HALF_HOUR_MS + 1, id);
    await worker.sweep();
    expect(await status()).toBe('error');
    expect(await object().storedKeys()).toEqual([]);
  });

  it('ends with a sweep if no client ever connected', async () => {
    const { id, object, status } = await openStream();
    await object().loseAlarm();
    await run('UPDATE live_streams SET created_at = created_at - ? WHERE id = ?', HALF_HOUR_MS, id);
    await worker.sweep();
    expect(await status()).toBe('error');
    expect(await object().storedKeys()).toEqual([]);
  });

  it('continues with a new alarm if its client is connected', async () => {
    const { id, url, object, status } = await openStream();
    const socket = await worker.connect(url);
    await object().loseAlarm();
    await run('UPDATE live_streams SET started_at = started_at - ? WHERE id = ?', HALF_HOUR_MS + 1, id);
    await worker.sweep();
    expect(await status()).toBe('running');
    expect(await object().alarmAt()).toBeGreaterThan(Date.now());
    socket.close();
    await expect.poll(status, { timeout: 10_000 }).toBe('done');
  });
});
