import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createKey, ensureAccount } from '../client/accounts.ts';
import { type RunSql, runSqlOn } from '../client/local/database.ts';
import { startWorkers } from '../test/helpers/workerd.ts';

/**
 * The object of a live stream in workerd, behind the real Worker: what becomes of it when the platform has given up its
 * alarm.
 */
const FRONT = `
import { LiveStream as Real } from './worker.js';
export class LiveStream extends Real {
  async loseAlarm() { await this.ctx.storage.deleteAlarm(); }
  async alarmAt() { return this.ctx.storage.getAlarm(); }
  async loseMemory() { this.ctx.abort(); }
  async kept() { return [...this.ctx.storage.kv.list()].map(([key]) => key); }
}`;

interface Opened {
  loseAlarm(): Promise<void>;
  alarmAt(): Promise<number | null>;
  /** The call fails, and the connection ends. */
  loseMemory(): Promise<void>;
  kept(): Promise<string[]>;
}

const HALF_HOUR = 30 * 60_000;

let worker: Awaited<ReturnType<typeof startWorkers>>;
let run: RunSql;
let key: string;
let objects: DurableObjectNamespace;
beforeAll(async () => {
  worker = await startWorkers({ live: FRONT, hasModels: true });
  run = runSqlOn(worker.db);
  objects = await worker.objects('LIVE_STREAM');
  const accountId = await ensureAccount(run, { name: 'main', subscribe: true }, 0);
  const { signingKey } = worker;
  key = (await createKey(run, { accountId, scopes: ['stream:write'], signingKey }, 0)).token;
});
afterAll(() => worker?.stop());

async function opened() {
  const { id, url } = (await (await worker.call('POST', '/v1/live', key)).json()) as { id: string; url: string };
  // The binding's type does not say which class stands behind it.
  const object = () => objects.get(objects.idFromName(id)) as unknown as Opened;
  const status = async () => (await run('SELECT status FROM live_streams WHERE id = ?', id))[0]!.status;
  return { id, url, object, status };
}

describe('a stream whose object has lost its alarm', () => {
  it('ends with the sweep of half an hour later where its connection was cut off: it kept its place for a day', async () => {
    const { id, url, object, status } = await opened();
    await worker.connect(url);
    await object().loseAlarm();
    await object()
      .loseMemory()
      .catch(() => undefined);
    expect(await object().kept()).toContain('stream');
    await worker.sweep();
    expect(await status()).toBe('running');
    await run('UPDATE live_streams SET started_at = started_at - ? WHERE id = ?', HALF_HOUR + 1, id);
    await worker.sweep();
    expect(await status()).toBe('error');
    expect(await object().kept()).toEqual([]);
  });

  it('ends with the sweep where nobody ever connected', async () => {
    const { id, object, status } = await opened();
    await object().loseAlarm();
    await run('UPDATE live_streams SET created_at = created_at - ? WHERE id = ?', HALF_HOUR, id);
    await worker.sweep();
    expect(await status()).toBe('error');
    expect(await object().kept()).toEqual([]);
  });

  it('goes on where its client is there, and has an alarm again', async () => {
    const { id, url, object, status } = await opened();
    const socket = await worker.connect(url);
    await object().loseAlarm();
    await run('UPDATE live_streams SET started_at = started_at - ? WHERE id = ?', HALF_HOUR + 1, id);
    await worker.sweep();
    expect(await status()).toBe('running');
    expect(await object().alarmAt()).toBeGreaterThan(Date.now());
    socket.close();
    await expect.poll(status, { timeout: 10_000 }).toBe('done');
  });
});
