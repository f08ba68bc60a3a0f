import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { DiarizeRequest } from '../src/contract/diarize.ts';
import type { JobStore } from '../src/jobs/job-store.ts';
import { workOf } from '../src/jobs/work-keys.ts';
import { createJobStore } from '../src/platform/d1/job-rows.ts';
import { nameOfModels, packOfBuild } from '../src/platform/models-in-use.ts';
import { startShards } from '../test/helpers/database.ts';
import { startWorkers } from '../test/helpers/workerd.ts';
import type { SentMessage, TestedJobProgress } from '../test/workers/tested-objects.ts';

/** The object of a job in workerd, with its own storage, a real database and queues that record messages. */

const WORK = workOf(nameOfModels(packOfBuild()));
const TAG = `${WORK}.0`;
const SECOND = 1000;
const MINUTE = 60 * SECOND;
/** Shares of the ingest and of the analysis in the progress of a job. */
const INGESTED = 0.1;
const ANALYSED = 0.85;
const WINDOW = 8;
/** Generous, because the machine may be busy. */
const POLLING = { timeout: 10_000 };

let worker: Awaited<ReturnType<typeof startWorkers>>;
let store: JobStore;
let objectOf: (jobId: string) => TestedJobProgress;
beforeAll(async () => {
  worker = await startWorkers({ jobs: 'job-progress-front' });
  store = createJobStore(worker.db);
  objectOf = await worker.objects<TestedJobProgress>('JOB_PROGRESS');
  await worker.db.prepare(`INSERT INTO accounts (id, name, subscribed, created_at) VALUES ('a', 'a', 1, 0)`).run();
});
afterAll(() => worker?.stop());

/** Creates a running job whose recording is being read. */
async function beginJob() {
  const id = randomUUID();
  const request = { url: 'https://example.com/a.wav' } as DiarizeRequest;
  await store.create({ accountId: 'a', kind: 'diarize', request, id, now: Date.now() });
  await store.start(id, Date.now());
  const object = objectOf(id);
  await object.begin(id, TAG);
  return { id, object };
}

/** Creates a job whose recording has been read. */
async function ingestedJob(shardCount: number) {
  const { id, object } = await beginJob();
  await startShards(store, id, { shardCount, durationSeconds: 300 * shardCount }, Date.now());
  await object.expect(TAG, shardCount);
  return { id, object };
}

const shardsOf = (sent: readonly SentMessage[]) =>
  sent.map(({ message }) => (message.step === 'shard' ? message.shard : message.step));
const sentSince = async (object: TestedJobProgress) => shardsOf(await object.sentSince());
const range = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => from + i);
const stepOf = async (id: string) =>
  (await store.overdue(Infinity, 100, { jobId: id })).rows.map(({ message }) => message.step);
/** Starts a shard and reports its part as done. */
async function analyse(object: TestedJobProgress, shard: number): Promise<void> {
  expect((await object.startShard(shard, TAG)).kind).toBe('run');
  expect(await object.partDone(shard, TAG)).toBe(true);
}

describe('the shards of a job', () => {
  it('are handed out eight at a time, and the last one starts the assembly', async () => {
    const { id, object } = await ingestedJob(20);
    expect(await sentSince(object)).toEqual(range(0, WINDOW));
    await analyse(object, 3);
    expect(await sentSince(object)).toEqual([8]);
    for (const shard of range(0, 20).filter((n) => n !== 3)) await analyse(object, shard);
    expect(await sentSince(object)).toEqual([...range(9, 20), 'assemble']);
    expect(await stepOf(id)).toEqual(['assemble']);
    // Repeated reports have no effect.
    expect(await object.partDone(19, TAG)).toBe(true);
    await object.expect(TAG, 20);
    expect([await sentSince(object), await stepOf(id)]).toEqual([[], ['assemble']]);
  });

  it('share one row in the database', async () => {
    const { id, object } = await ingestedJob(288);
    for (const shard of range(0, 12)) await analyse(object, shard);
    expect(await stepOf(id)).toEqual(['analyse']);
  });

  it('of a long job are handed out during the ingest, through the queue of long jobs', async () => {
    const { object } = await beginJob();
    await object.ready(TAG, 2);
    expect(await sentSince(object)).toEqual([]);
    await object.ready(TAG, 3);
    const sent = await object.sentSince();
    expect([shardsOf(sent), new Set(sent.map(({ name }) => name))]).toEqual([[0, 1, 2], new Set(['jobs'])]);
    const short = await (await ingestedJob(2)).object.sentSince();
    expect(short).toMatchObject([
      { name: 'priority', message: { shard: 0, isShort: true } },
      { name: 'priority', message: { shard: 1, isShort: true } },
    ]);
  });

  it('are begun once: duplicate messages are skipped during and after the work', async () => {
    const { object } = await ingestedJob(3);
    expect(await object.startShard(0, TAG)).toEqual({ kind: 'run', starts: 1 });
    expect(await object.startShard(0, TAG)).toEqual({ kind: 'skip' });
    await object.partDone(0, TAG);
    expect(await object.startShard(0, TAG)).toEqual({ kind: 'skip' });
    expect(await object.startShard(7, TAG)).toEqual({ kind: 'unknown' });
    expect(await object.startShard(1, `${WORK}.1`)).toEqual({ kind: 'unknown' });
  });

  it('of an earlier file are ignored after the recording changed', async () => {
    const { id, object } = await ingestedJob(2);
    await analyse(object, 0);
    const nextTag = `${WORK}.1`;
    await object.begin(id, nextTag);
    await object.sentSince();
    // The number of shards of the first file is ignored.
    await object.expect(TAG, 1);
    expect([await object.partDone(1, TAG), await object.report(1, TAG, 0.5)]).toEqual([false, false]);
    await object.expect(nextTag, 2);
    expect([await sentSince(object), await stepOf(id)]).toEqual([[0, 1], ['analyse']]);
    // The previous version continues; the shards that it handed out are lost.
    await object.begin(id, TAG);
    await object.expect(TAG, 2);
    expect(await sentSince(object)).toEqual([1]);
  });

  it('are all handed out again after a restart', async () => {
    const { id, object } = await ingestedJob(2);
    for (const shard of [0, 1]) await analyse(object, shard);
    await object.sentSince();
    await object.restart(TAG);
    await store.nextStep(id, ['assemble'], 'analyse', Date.now());
    await object.expect(TAG, 2);
    for (const shard of [0, 1]) await analyse(object, shard);
    expect([await sentSince(object), await stepOf(id)]).toEqual([[0, 1, 'assemble'], ['assemble']]);
  });

  it('are restored after the object was reset', async () => {
    const { object, id } = await ingestedJob(3);
    await analyse(object, 0);
    await object.loseMemory().catch(() => undefined);
    const again = objectOf(id);
    expect(await again.fraction()).toBeCloseTo(INGESTED + ANALYSED / 3);
    for (const shard of [1, 2]) await analyse(again, shard);
    expect(await stepOf(id)).toEqual(['assemble']);
  });
});

describe('a shard that is lost', () => {
  /** Runs `run` with the clock of the service `ms` ahead. */
  async function withClockAhead<T>(object: TestedJobProgress, ms: number, run: () => Promise<T>): Promise<T> {
    await object.setClock(ms);
    try {
      return await run();
    } finally {
      await object.setClock(0);
    }
  }

  it('in its queue is sent again by the alarm after 15 minutes', async () => {
    const { object } = await ingestedJob(3);
    expect(await object.alarmAt()).toBeGreaterThan(Date.now() + 14 * MINUTE);
    await analyse(object, 0);
    await object.sentSince();
    await withClockAhead(object, 14 * MINUTE, () => object.runAlarm());
    expect(await sentSince(object)).toEqual([]);
    await withClockAhead(object, 16 * MINUTE, () => object.runAlarm());
    expect(await sentSince(object)).toEqual([1, 2]);
  });

  it('by its consumer is sent again a minute after its last report, with growing delays', async () => {
    const { object } = await ingestedJob(1);
    await object.sentSince();
    let ms = 0;
    const delays: number[] = [];
    for (let starts = 1; starts <= 5; starts++) {
      await withClockAhead(object, ms, async () => {
        expect(await object.startShard(0, TAG)).toEqual({ kind: 'run', starts });
        expect(await object.report(0, TAG, 0.5)).toBe(true);
        expect(await object.alarmAt()).toBeLessThanOrEqual(Date.now() + ms + MINUTE);
      });
      ms += MINUTE + SECOND;
      await withClockAhead(object, ms, () => object.runAlarm());
      const [sent] = await object.sentSince();
      delays.push(sent!.delaySeconds!);
      ms += 1000 * sent!.delaySeconds!;
    }
    expect(delays).toEqual([0, 15, 30, 60, 120]);
  });

  it('by a fault of the platform does not count as started', async () => {
    const { object } = await ingestedJob(1);
    for (let round = 0; round < 3; round++) {
      expect(await object.startShard(0, TAG)).toEqual({ kind: 'run', starts: 1 });
      await object.putBack(0, TAG, Date.now() + 5 * SECOND, true);
    }
    await object.startShard(0, TAG);
    await object.putBack(0, TAG, Date.now(), false);
    expect(await object.startShard(0, TAG)).toEqual({ kind: 'run', starts: 2 });
  });

  it('together with its alarm is sent again with the next part or sweep', async () => {
    const { object } = await ingestedJob(4);
    await object.startShard(1, TAG);
    await object.sentSince();
    await object.loseAlarm();
    await withClockAhead(object, 2 * MINUTE, () => analyse(object, 0));
    expect(await sentSince(object)).toEqual([1]);
    expect(await object.alarmAt()).not.toBeNull();
    await object.startShard(1, TAG);
    await object.loseAlarm();
    await withClockAhead(object, 2 * MINUTE, () => object.expect(TAG, 4));
    expect(await sentSince(object)).toEqual([1]);
  });

  it('is sent again if the platform gave up the alarm and still returns its time', async () => {
    const { object } = await ingestedJob(4);
    await object.startShard(1, TAG);
    await object.sentSince();
    await object.breakAlarm();
    const brokenAt = Date.now();
    await expect.poll(() => object.alarmAt(), POLLING).toBeLessThanOrEqual(brokenAt);
    await withClockAhead(object, 10 * MINUTE, () => analyse(object, 0));
    expect(await sentSince(object)).toEqual([1]);
    expect(await object.alarmAt()).toBeGreaterThan(brokenAt + 9 * MINUTE);
  });

  it('in a restart of the local service is sent again at once', async () => {
    const { object } = await ingestedJob(3);
    await object.startShard(1, TAG);
    await object.sentSince();
    await object.resend();
    expect(await sentSince(object)).toEqual([0, 1, 2]);
  });

  it('because the queue was unavailable is sent by an alarm within a minute', async () => {
    const { object } = await beginJob();
    await object.setQueuesDown(true);
    await object.expect(TAG, 3);
    expect(await sentSince(object)).toEqual([]);
    expect(await object.alarmAt()).toBeLessThan(Date.now() + MINUTE);
    await object.setQueuesDown(false);
    await withClockAhead(object, MINUTE, () => object.runAlarm());
    expect(await sentSince(object)).toEqual([0, 1, 2]);
  });

  it('is not sent again once its job has ended, and the storage is erased', async () => {
    const { id, object } = await ingestedJob(3);
    await object.sentSince();
    await store.cancel(id, { code: 'canceled', message: 'x' }, Date.now());
    await withClockAhead(object, 16 * MINUTE, () => object.runAlarm());
    expect([await sentSince(object), await object.tables()]).toEqual([[], []]);
  });
});

describe('the end of a job', () => {
  it.each(['reported', 'discovered by the alarm'])(
    'that is %s erases the object, which ignores later calls',
    async (how) => {
      const { id, object } = await ingestedJob(1);
      await analyse(object, 0);
      expect(await object.tables()).toHaveLength(2);
      await store.fail(id, { code: 'x', message: 'x' }, Date.now());
      await (how === 'reported' ? object.end() : object.runAlarm());
      expect([await object.tables(), await object.alarmAt()]).toEqual([[], null]);
      expect([await object.partDone(0, TAG), await object.fraction()]).toEqual([false, 0]);
      expect(await object.startShard(0, TAG)).toEqual({ kind: 'skip' });
      await object.begin(id, TAG);
      expect(await object.tables()).toEqual([]);
    },
  );

  it('is checked once an hour during the assembly', async () => {
    const { object } = await ingestedJob(1);
    await analyse(object, 0);
    await object.runAlarm();
    expect(await object.alarmAt()).toBeGreaterThan(Date.now() + 59 * MINUTE);
  });
});

it('the alarm starts an assembly that could not be queued while the database was down', async () => {
  const { id, object } = await ingestedJob(1);
  await object.startShard(0, TAG);
  await worker.db.prepare('ALTER TABLE outbox RENAME TO outbox_down').run();
  try {
    expect(await object.partDone(0, TAG)).toBe(true);
    expect(await object.alarmAt()).toBeLessThan(Date.now() + MINUTE);
  } finally {
    await worker.db.prepare('ALTER TABLE outbox_down RENAME TO outbox').run();
  }
  await object.runAlarm();
  expect(await stepOf(id)).toEqual(['assemble']);
});

it('the progress of a job rises with its ingest and its parts, and never falls', async () => {
  const { object } = await beginJob();
  expect(await object.fraction()).toBe(0);
  const shown: number[] = [];
  const record = async () => void shown.push(await object.fraction());
  for (const share of [0, 0.25, 0.5, 0.4, 2, 0.5]) {
    await object.reportIngest(share);
    await record();
  }
  await object.expect(TAG, 4);
  for (const shard of [0, 1]) {
    await object.startShard(shard, TAG);
    await object.report(shard, TAG, 0.5);
    await record();
    await object.partDone(shard, TAG);
    await record();
  }
  expect([...shown].sort((a, b) => a - b)).toEqual(shown);
  expect(shown.slice(0, 3)).toEqual([0, 0.025, 0.05]);
  expect(shown.every((share) => share >= 0 && share <= 0.95)).toBe(true);
});
