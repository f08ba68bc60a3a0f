import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { DiarizeRequest } from '../src/contract/diarize.ts';
import type { ShardMessage } from '../src/jobs/job-messages.ts';
import type { JobStore } from '../src/jobs/job-store.ts';
import { workOf } from '../src/jobs/work-keys.ts';
import { createJobStore } from '../src/platform/d1/job-rows.ts';
import { nameOfModels, packOfBuild } from '../src/platform/models-in-use.ts';
import type { ProgressRpc } from '../src/platform/object-stubs.ts';
import { startShards } from '../test/helpers/database.ts';
import { startWorkers } from '../test/helpers/workerd.ts';

/** The object of a job in workerd, on its own storage, a real database and queues that note what is sent. */
const FRONT = `
import { JobProgress as Real } from './worker.js';
const machine = Date.now;
export class JobProgress extends Real {
  isBroken = false;
  queues = { isAway: false };
  sent = [];
  constructor(state, env) {
    const note = (name) => ({
      send: async (message) => void this.sent.push({ name, message }),
      sendBatch: async (requests) => {
        if (this.queues.isAway) throw new Error('the queue is away');
        for (const { body, delaySeconds } of requests) this.sent.push({ name, message: body, delaySeconds });
      },
    });
    super(state, { ...env, JOBS: note('jobs'), PRIORITY: note('priority') });
  }
  alarm() {
    if (this.isBroken) throw new Error('a deployment that is broken');
    return super.alarm();
  }
  async sentSince() { return this.sent.splice(0); }
  async takeQueuesAway(isAway) { this.queues.isAway = isAway; }
  async alarmAt() { return this.ctx.storage.getAlarm(); }
  async ring() { await this.alarm(); }
  async loseAlarm() { await this.ctx.storage.deleteAlarm(); }
  async breakAlarm() { this.isBroken = true; await this.ctx.storage.setAlarm(machine()); }
  async setClock(later) { this.isBroken = false; Date.now = () => machine() + later; }
  async loseMemory() { this.ctx.abort(); }
  async tables() {
    return this.ctx.storage.sql.exec("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '\\\\_cf%' ESCAPE '\\\\'").toArray().map(({ name }) => name);
  }
}`;

interface Sent {
  readonly name: 'jobs' | 'priority';
  readonly message: ShardMessage | { readonly step: 'assemble' };
  readonly delaySeconds: number;
}

interface Opened extends ProgressRpc {
  sentSince(): Promise<Sent[]>;
  takeQueuesAway(isAway: boolean): Promise<void>;
  alarmAt(): Promise<number | null>;
  /** Lets its alarm come. */
  ring(): Promise<void>;
  loseAlarm(): Promise<void>;
  /** From now on the alarm fails. */
  breakAlarm(): Promise<void>;
  /** The alarm fails no longer, and the clock of the service is fast by so many milliseconds. */
  setClock(laterMs: number): Promise<void>;
  /** The call fails. */
  loseMemory(): Promise<void>;
  tables(): Promise<string[]>;
}

const WORK = workOf(nameOfModels(packOfBuild()));
const TAG = `${WORK}.0`;
const SECOND = 1000;
const MINUTE = 60 * SECOND;
/** Shares of the whole that the reading of a recording and its analysis are shown as. */
const INGESTED = 0.1;
const ANALYSED = 0.85;
const WINDOW = 8;
/** A busy machine takes its time. */
const SOON = { timeout: 10_000 };

let worker: Awaited<ReturnType<typeof startWorkers>>;
let store: JobStore;
let objects: DurableObjectNamespace;
beforeAll(async () => {
  worker = await startWorkers({ jobs: FRONT });
  store = createJobStore(worker.db);
  objects = await worker.objects('JOB_PROGRESS');
  await worker.db.prepare(`INSERT INTO accounts (id, name, subscribed, created_at) VALUES ('a', 'a', 1, 0)`).run();
});
afterAll(() => worker?.stop());

// The binding's type does not say which class stands after it.
const objectOf = (id: string) => objects.get(objects.idFromName(id)) as unknown as Opened;

/** A running job that is being read. */
async function begun() {
  const id = randomUUID();
  const request = { url: 'https://example.com/a.wav' } as DiarizeRequest;
  await store.create({ accountId: 'a', kind: 'diarize', request, id, now: Date.now() });
  await store.start(id, Date.now());
  const object = objectOf(id);
  await object.begin(id, TAG);
  return { id, object };
}

/** One that was read, and has so many shards. */
async function analysed(shardCount: number) {
  const { id, object } = await begun();
  await startShards(store, id, { shardCount, durationSeconds: 300 * shardCount }, Date.now());
  await object.expect(TAG, shardCount);
  return { id, object };
}

const shardsOf = (sent: readonly Sent[]) =>
  sent.map(({ message }) => (message.step === 'shard' ? message.shard : message.step));
const sentSince = async (object: Opened) => shardsOf(await object.sentSince());
const range = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => from + i);
const stepOf = async (id: string) =>
  (await store.overdue(Infinity, 100, { jobId: id })).rows.map(({ message }) => message.step);
/** Analyses a shard. */
async function analyse(object: Opened, shard: number): Promise<void> {
  expect((await object.startShard(shard, TAG)).kind).toBe('run');
  expect(await object.partDone(shard, TAG)).toBe(true);
}

describe('the shards of a job', () => {
  it('are handed out eight at a time, each done one makes room, and the last has them assembled', async () => {
    const { id, object } = await analysed(20);
    expect(await sentSince(object)).toEqual(range(0, WINDOW));
    await analyse(object, 3);
    expect(await sentSince(object)).toEqual([8]);
    for (const shard of range(0, 20).filter((n) => n !== 3)) await analyse(object, shard);
    expect(await sentSince(object)).toEqual([...range(9, 20), 'assemble']);
    expect(await stepOf(id)).toEqual(['assemble']);
    // However often it is said.
    expect(await object.partDone(19, TAG)).toBe(true);
    await object.expect(TAG, 20);
    expect([await sentSince(object), await stepOf(id)]).toEqual([[], ['assemble']]);
  });

  it('have one row in the database, whatever their number', async () => {
    const { id, object } = await analysed(288);
    for (const shard of range(0, 12)) await analyse(object, shard);
    expect(await stepOf(id)).toEqual(['analyse']);
  });

  it('of a long job are handed out while it is read, and wait in another queue than those of a short one', async () => {
    const { object } = await begun();
    await object.ready(TAG, 2);
    expect(await sentSince(object)).toEqual([]);
    await object.ready(TAG, 3);
    const sent = await object.sentSince();
    expect([shardsOf(sent), new Set(sent.map(({ name }) => name))]).toEqual([[0, 1, 2], new Set(['jobs'])]);
    const short = await (await analysed(2)).object.sentSince();
    expect(short).toMatchObject([
      { name: 'priority', message: { shard: 0, isShort: true } },
      { name: 'priority', message: { shard: 1, isShort: true } },
    ]);
  });

  it('are begun once: a second copy of a message does nothing while the first is in work, and after it', async () => {
    const { object } = await analysed(3);
    expect(await object.startShard(0, TAG)).toEqual({ kind: 'run', starts: 1 });
    expect(await object.startShard(0, TAG)).toEqual({ kind: 'skip' });
    await object.partDone(0, TAG);
    expect(await object.startShard(0, TAG)).toEqual({ kind: 'skip' });
    expect(await object.startShard(7, TAG)).toEqual({ kind: 'unknown' });
    expect(await object.startShard(1, `${WORK}.1`)).toEqual({ kind: 'unknown' });
  });

  it('are of a file: of one that is read again none is there, and those of the first are left out', async () => {
    const { id, object } = await analysed(2);
    await analyse(object, 0);
    const anew = `${WORK}.1`;
    await object.begin(id, anew);
    await object.sentSince();
    // How many there were of the first says nothing.
    await object.expect(TAG, 1);
    expect([await object.partDone(1, TAG), await object.report(1, TAG, 0.5)]).toEqual([false, false]);
    await object.expect(anew, 2);
    expect([await sentSince(object), await stepOf(id)]).toEqual([[0, 1], ['analyse']]);
    // The version before takes its turn again: what it handed out is lost.
    await object.begin(id, TAG);
    await object.expect(TAG, 2);
    expect(await sentSince(object)).toEqual([1]);
  });

  it('are all handed out again where their parts are gone', async () => {
    const { id, object } = await analysed(2);
    for (const shard of [0, 1]) await analyse(object, shard);
    await object.sentSince();
    await object.restart(TAG);
    await store.nextStep(id, ['assemble'], 'analyse', Date.now());
    await object.expect(TAG, 2);
    for (const shard of [0, 1]) await analyse(object, shard);
    expect([await sentSince(object), await stepOf(id)]).toEqual([[0, 1, 'assemble'], ['assemble']]);
  });

  it('are still known after the object was lost', async () => {
    const { object, id } = await analysed(3);
    await analyse(object, 0);
    await object.loseMemory().catch(() => undefined);
    const again = objectOf(id);
    expect(await again.fraction()).toBeCloseTo(INGESTED + ANALYSED / 3);
    for (const shard of [1, 2]) await analyse(again, shard);
    expect(await stepOf(id)).toEqual(['assemble']);
  });
});

describe('a shard that is lost', () => {
  /** The time by the clock of the service, as long as it is asked for. */
  async function later<T>(object: Opened, ms: number, run: () => Promise<T>): Promise<T> {
    await object.setClock(ms);
    try {
      return await run();
    } finally {
      await object.setClock(0);
    }
  }

  it('in its queue is sent again by the alarm after a quarter of an hour, and not before', async () => {
    const { object } = await analysed(3);
    expect(await object.alarmAt()).toBeGreaterThan(Date.now() + 14 * MINUTE);
    await analyse(object, 0);
    await object.sentSince();
    await later(object, 14 * MINUTE, () => object.ring());
    expect(await sentSince(object)).toEqual([]);
    await later(object, 16 * MINUTE, () => object.ring());
    expect(await sentSince(object)).toEqual([1, 2]);
  });

  it('by its consumer is sent again a minute after its last sign of life, after ever longer pauses', async () => {
    const { object } = await analysed(1);
    await object.sentSince();
    let ms = 0;
    const delays: number[] = [];
    for (let starts = 1; starts <= 5; starts++) {
      await later(object, ms, async () => {
        expect(await object.startShard(0, TAG)).toEqual({ kind: 'run', starts });
        expect(await object.report(0, TAG, 0.5)).toBe(true);
        expect(await object.alarmAt()).toBeLessThanOrEqual(Date.now() + ms + MINUTE);
      });
      ms += MINUTE + SECOND;
      await later(object, ms, () => object.ring());
      const [sent] = await object.sentSince();
      delays.push(sent!.delaySeconds);
      ms += 1000 * sent!.delaySeconds;
    }
    expect(delays).toEqual([0, 15, 30, 60, 120]);
  });

  it('and put back with a fault of the platform has not been begun', async () => {
    const { object } = await analysed(1);
    for (let round = 0; round < 3; round++) {
      expect(await object.startShard(0, TAG)).toEqual({ kind: 'run', starts: 1 });
      await object.putBack(0, TAG, Date.now() + 5 * SECOND, true);
    }
    await object.startShard(0, TAG);
    await object.putBack(0, TAG, Date.now(), false);
    expect(await object.startShard(0, TAG)).toEqual({ kind: 'run', starts: 2 });
  });

  it('with its alarm is sent again by the next part, or by the sweep', async () => {
    const { object } = await analysed(4);
    await object.startShard(1, TAG);
    await object.sentSince();
    await object.loseAlarm();
    await later(object, 2 * MINUTE, () => analyse(object, 0));
    expect(await sentSince(object)).toEqual([1]);
    expect(await object.alarmAt()).not.toBeNull();
    await object.startShard(1, TAG);
    await object.loseAlarm();
    await later(object, 2 * MINUTE, () => object.expect(TAG, 4));
    expect(await sentSince(object)).toEqual([1]);
  });

  it('is sent again where the platform has given its alarm up and still tells its time', async () => {
    const { object } = await analysed(4);
    await object.startShard(1, TAG);
    await object.sentSince();
    await object.breakAlarm();
    const brokenAt = Date.now();
    await expect.poll(() => object.alarmAt(), SOON).toBeLessThanOrEqual(brokenAt);
    await later(object, 10 * MINUTE, () => analyse(object, 0));
    expect(await sentSince(object)).toEqual([1]);
    expect(await object.alarmAt()).toBeGreaterThan(brokenAt + 9 * MINUTE);
  });

  it('with everything else that was sent, as after a restart of the local service, is sent at once', async () => {
    const { object } = await analysed(3);
    await object.startShard(1, TAG);
    await object.sentSince();
    await object.resend();
    expect(await sentSince(object)).toEqual([0, 1, 2]);
  });

  it('because the queue was away is sent by the alarm, which comes soon', async () => {
    const { object } = await begun();
    await object.takeQueuesAway(true);
    await object.expect(TAG, 3);
    expect(await sentSince(object)).toEqual([]);
    expect(await object.alarmAt()).toBeLessThan(Date.now() + MINUTE);
    await object.takeQueuesAway(false);
    await later(object, MINUTE, () => object.ring());
    expect(await sentSince(object)).toEqual([0, 1, 2]);
  });

  it('is not sent again once its job has ended, and nothing is kept', async () => {
    const { id, object } = await analysed(3);
    await object.sentSince();
    await store.cancel(id, { code: 'canceled', message: 'x' }, Date.now());
    await later(object, 16 * MINUTE, () => object.ring());
    expect([await sentSince(object), await object.tables()]).toEqual([[], []]);
  });
});

describe('the end of a job', () => {
  it.each(['told', 'found out by its alarm'])(
    'that is %s erases the object, and nothing counts there any more',
    async (how) => {
      const { id, object } = await analysed(1);
      await analyse(object, 0);
      expect(await object.tables()).toHaveLength(2);
      await store.fail(id, { code: 'x', message: 'x' }, Date.now());
      await (how === 'told' ? object.end() : object.ring());
      expect([await object.tables(), await object.alarmAt()]).toEqual([[], null]);
      expect([await object.partDone(0, TAG), await object.fraction()]).toEqual([false, 0]);
      expect(await object.startShard(0, TAG)).toEqual({ kind: 'skip' });
      await object.begin(id, TAG);
      expect(await object.tables()).toEqual([]);
    },
  );

  it('is asked for once an hour while the job is assembled', async () => {
    const { object } = await analysed(1);
    await analyse(object, 0);
    await object.ring();
    expect(await object.alarmAt()).toBeGreaterThan(Date.now() + 59 * MINUTE);
  });
});

it('an assembly that could not be asked for, as the database was away, is asked for by the alarm', async () => {
  const { id, object } = await analysed(1);
  await object.startShard(0, TAG);
  await worker.db.prepare('ALTER TABLE outbox RENAME TO outbox_away').run();
  try {
    expect(await object.partDone(0, TAG)).toBe(true);
    expect(await object.alarmAt()).toBeLessThan(Date.now() + MINUTE);
  } finally {
    await worker.db.prepare('ALTER TABLE outbox_away RENAME TO outbox').run();
  }
  await object.ring();
  expect(await stepOf(id)).toEqual(['assemble']);
});

it('the progress of a job rises with its recording and with its parts, and never falls', async () => {
  const { object } = await begun();
  expect(await object.fraction()).toBe(0);
  const shown: number[] = [];
  const look = async () => void shown.push(await object.fraction());
  for (const share of [0, 0.25, 0.5, 0.4, 2, 0.5]) {
    await object.reportIngest(share);
    await look();
  }
  await object.expect(TAG, 4);
  for (const shard of [0, 1]) {
    await object.startShard(shard, TAG);
    await object.report(shard, TAG, 0.5);
    await look();
    await object.partDone(shard, TAG);
    await look();
  }
  expect([...shown].sort((a, b) => a - b)).toEqual(shown);
  expect(shown.slice(0, 3)).toEqual([0, 0.025, 0.05]);
  expect(shown.every((share) => share >= 0 && share <= 0.95)).toBe(true);
});
