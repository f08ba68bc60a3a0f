import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startStorage } from '../../../test/helpers/storage.ts';
import type { LiveObjects } from '../../jobs/live-ports.ts';
import { sweepStreams } from '../../jobs/live-streams.ts';
import { createLiveStore } from './live-store.ts';

let storage: Awaited<ReturnType<typeof startStorage>>;
beforeAll(async () => {
  storage = await startStorage();
});
afterAll(() => storage?.stop());

const DONE = { status: 'done', receivedSeconds: 61.5 } as const;
const FAILED = { status: 'error', receivedSeconds: 61.5 } as const;
const store = () => createLiveStore(storage.db);

async function newAccount(subscribed = false): Promise<string> {
  const id = crypto.randomUUID();
  await storage.db
    .prepare('INSERT INTO accounts (id, name, subscribed, credit_seconds, created_at) VALUES (?1, ?1, ?2, 100, 0)')
    .bind(id, subscribed ? 1 : 0)
    .run();
  return id;
}

async function newStream(accountId: string): Promise<string> {
  const id = crypto.randomUUID();
  expect(await store().create({ id, accountId, input: { latency: 500 }, now: 1 }, 10)).toBe('created');
  return id;
}

const creditOf = (accountId: string) =>
  storage.db.prepare('SELECT credit_seconds FROM accounts WHERE id = ?').bind(accountId).first('credit_seconds');
const billsOf = async (streamId: string) => {
  const select = 'SELECT kind, billed_seconds, credit_seconds, created_at FROM usage_records WHERE job_id = ?';
  return (await storage.db.prepare(select).bind(streamId).all()).results;
};

describe('LiveStore', () => {
  it('goes from created to running to done once, with one usage record', async () => {
    const accountId = await newAccount();
    const id = await newStream(accountId);
    expect(await store().find(id)).toEqual({
      id,
      accountId,
      status: 'created',
      input: { latency: 500 },
      startedAt: undefined,
      completedAt: undefined,
    });
    expect(await Promise.all([2, 2, 2].map((now) => store().start(id, now)))).toEqual([true, false, false]);
    const ends = await Promise.all([DONE, DONE, FAILED, DONE].map((outcome) => store().end(id, outcome, 3)));
    expect(ends).toEqual([true, false, false, false]);
    expect(await store().find(id)).toMatchObject({ status: 'done', startedAt: 2, completedAt: 3 });
    expect(await billsOf(id)).toEqual([{ kind: 'live', billed_seconds: 61.5, credit_seconds: 61.5, created_at: 3 }]);
    expect(await creditOf(accountId)).toBe(38.5);
  });

  it('bills nothing for an error or a stream without a frame', async () => {
    const accountId = await newAccount();
    for (const outcome of [FAILED, { status: 'done', receivedSeconds: 0 } as const]) {
      const id = await newStream(accountId);
      await store().start(id, 2);
      expect(await store().end(id, outcome, 3)).toBe(true);
      expect(await billsOf(id)).toEqual([]);
    }
    expect(await creditOf(accountId)).toBe(100);
  });

  it('refuses further credit once the streams of an account have used it up', async () => {
    const accountId = await newAccount();
    const ids = await Promise.all([1, 2, 3, 4].map(() => newStream(accountId)));
    for (const id of ids) await store().start(id, 2);
    // The four streams reserve 20 of the 100 s each at their start.
    expect(await store().spend(ids[0]!, 30)).toBe(true);
    expect(await store().spend(ids[1]!, 30)).toBe(false);
    await store().end(ids[1]!, { status: 'error', receivedSeconds: 30 }, 3);
    expect(await store().spend(ids[0]!, 59.9)).toBe(true);
    expect(await store().spend(ids[0]!, 60)).toBe(false);
    // A resumed stream sends some audio again, which returns no credit.
    expect(await store().spend(ids[0]!, 50)).toBe(false);
    const member = await newAccount(true);
    const free = await newStream(member);
    expect(await store().spend(free, 1e6)).toBe(true);
    expect(await store().spend(ids[1]!, 1e6)).toBe(true);
  });

  it('does not charge a subscriber or another account', async () => {
    const [member, other] = [await newAccount(true), await newAccount()];
    const id = await newStream(member);
    await store().start(id, 2);
    await store().end(id, DONE, 3);
    expect(await billsOf(id)).toHaveLength(1);
    expect([await creditOf(member), await creditOf(other)]).toEqual([100, 100]);
  });

  it('is never done without having run, and cannot start after its end', async () => {
    const id = await newStream(await newAccount());
    expect(await store().end(id, DONE, 3)).toBe(false);
    expect(await billsOf(id)).toEqual([]);
    expect(await store().end(id, FAILED, 3)).toBe(true);
    expect(await store().start(id, 4)).toBe(false);
    expect(await store().find(id)).toMatchObject({ status: 'error', completedAt: 3 });
  });

  it('limits the open streams of an account exactly', async () => {
    const [accountId, other] = [await newAccount(true), await newAccount()];
    const create = () => store().create({ id: crypto.randomUUID(), accountId, input: {}, now: 1 }, 10);
    const created = await Promise.all(Array.from({ length: 25 }, create));
    expect(created.filter((outcome) => outcome === 'created')).toHaveLength(10);
    const { results } = await storage.db
      .prepare('SELECT id FROM live_streams WHERE account_id = ?')
      .bind(accountId)
      .all();
    await store().end(String(results[0].id), FAILED, 2);
    expect([await create(), await create()]).toEqual(['created', 'too_many_streams']);
    await newStream(other);
  });
});

describe('sweepStreams', () => {
  const MINUTE = 60_000;
  const DAY = 24 * 60 * MINUTE;
  const times = { tokenMs: 10 * MINUTE, idleMs: MINUTE, maxMs: DAY, resumeMs: 1, creditMs: 1, connectedMs: DAY };
  const statusOf = async (id: string) => (await store().find(id))?.status;

  /** Runs a sweep. @param wakes whether the stream's object still has the stream @returns ids of the woken streams */
  async function sweep(now: number, wakes: (id: string) => Promise<boolean>): Promise<string[]> {
    const woken: string[] = [];
    const wake = (id: string) => {
      woken.push(id);
      return wakes(id);
    };
    const objects = { wake } as Partial<LiveObjects> as LiveObjects;
    await sweepStreams({ store: store(), objects, times, now: () => now, log: () => undefined });
    return woken;
  }

  it('ends streams whose objects have lost them', async () => {
    await storage.db.prepare('DELETE FROM live_streams').run();
    const accountId = await newAccount();
    const [unused, running, ended] = [
      await newStream(accountId),
      await newStream(accountId),
      await newStream(accountId),
    ];
    for (const id of [running, ended]) await store().start(id, 2);
    await store().end(ended, DONE, 3);
    expect(await sweep(20 * MINUTE, async () => false)).toEqual([]);
    expect(await sweep(21 * MINUTE, async (id) => id !== unused)).toEqual([unused]);
    expect(await statusOf(unused)).toBe('error');
    const late = DAY + 11 * MINUTE;
    // An object that still has the stream ends it itself.
    expect(await sweep(late, async () => true)).toEqual([running]);
    expect(await statusOf(running)).toBe('running');
    const failing = sweep(late, () => Promise.reject(new Error('misconfigured Worker')));
    await expect(failing).rejects.toThrow('misconfigured');
    expect(await statusOf(running)).toBe('running');
    const together = await Promise.all([sweep(late, async () => false), sweep(late, async () => false)]);
    expect(together.flat()).toContain(running);
    expect(await store().find(running)).toMatchObject({ status: 'error', startedAt: 2, completedAt: late });
    expect(await sweep(late, async () => false)).toEqual([]);
    for (const id of [unused, running]) expect(await billsOf(id)).toEqual([]);
    expect(await billsOf(ended)).toHaveLength(1);
  });

  it('checks a running stream from half an hour after its start', async () => {
    await storage.db.prepare('DELETE FROM live_streams').run();
    const running = await newStream(await newAccount());
    await store().start(running, 2);
    expect(await sweep(30 * MINUTE, async () => false)).toEqual([]);
    expect(await sweep(31 * MINUTE, async () => true)).toEqual([running]);
    expect(await statusOf(running)).toBe('running');
    expect(await sweep(32 * MINUTE, async () => false)).toEqual([running]);
    expect(await statusOf(running)).toBe('error');
  });

  it('reaches every stream over several sweeps', async () => {
    await storage.db.prepare('DELETE FROM live_streams').run();
    const insert = storage.db.prepare(
      `INSERT INTO live_streams (id, account_id, status, input, created_at, started_at) VALUES (?1, ?2, 'running', '{}', 1, 1)`,
    );
    const accountId = await newAccount();
    await storage.db.batch(Array.from({ length: 300 }, (_, i) => insert.bind(`many-${i}`, accountId)));
    const seen = new Set<string>();
    for (let sweeps = 0; sweeps < 20; sweeps++) {
      const woken = await sweep(60 * MINUTE, async () => true);
      expect(woken.length).toBeLessThan(300);
      for (const id of woken) seen.add(id);
    }
    expect(seen.size).toBe(300);
    await storage.db.prepare('DELETE FROM live_streams').run();
  });

  it('continues with other streams when one object fails', async () => {
    const accountId = await newAccount();
    const [broken, lost] = [await newStream(accountId), await newStream(accountId)];
    const wakes = async (id: string) => {
      if (id === broken) throw new Error('no object');
      return false;
    };
    await expect(sweep(21 * MINUTE, wakes)).rejects.toThrow('no object');
    expect([await statusOf(broken), await statusOf(lost)]).toEqual(['created', 'error']);
  });
});
