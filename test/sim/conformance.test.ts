import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';

/**
 * Checks that the simulated Durable Object of a job behaves like a real one in workerd: the same tests run on both,
 * each with a D1 database.
 */

const clock = vi.hoisted(() => {
  const simulated: { now: (() => number) | undefined } = { now: undefined };
  const machine = Date.now;
  Date.now = () => simulated.now?.() ?? machine();
  return simulated;
});
vi.mock('../../src/services-jobs.ts', async () => (await import('./doubles.ts')).services);
vi.mock('cloudflare:workers', async () => (await import('./doubles.ts')).workers);

import type { DiarizeRequest } from '../../src/contract/diarize.ts';
import type { JobStore } from '../../src/jobs/job-store.ts';
import { createJobStore } from '../../src/platform/d1/job-rows.ts';
import type { ProgressRpc } from '../../src/platform/object-stubs.ts';
import { startShards } from '../helpers/database.ts';
import { type Storage, startStorage } from '../helpers/storage.ts';
import { startWorkers } from '../helpers/workerd.ts';
import type { TestedJobProgress } from '../workers/tested-objects.ts';
import { MINUTE } from './timeline.ts';
import { World } from './world.ts';

/** A job's Durable Object, real or simulated. */
interface Subject {
  readonly db: D1Database;
  readonly now: () => number;
  call<T>(run: (object: ProgressRpc) => Promise<T>): Promise<T>;
  /** Runs its alarm. */
  fireAlarm(): Promise<void>;
  evict(): Promise<void>;
  /** Whether it has stored rows or an alarm. */
  hasStorage(): Promise<boolean>;
  alarmAt(): Promise<number | null>;
}

const ID = 'job';
const TAG = 'v.0';
/** Allows for a busy machine. */
const POLL = { timeout: 10_000 };
let worker: Awaited<ReturnType<typeof startWorkers>>;
let storage: Storage;
beforeAll(async () => {
  [worker, storage] = await Promise.all([startWorkers({ jobs: 'job-progress-front' }), startStorage()]);
});
afterAll(async () => {
  await storage?.stop();
  await worker?.stop();
});
async function real(): Promise<Subject> {
  const objects = await worker.objects<TestedJobProgress>('JOB_PROGRESS');
  const object = () => objects(ID);
  return {
    db: worker.db,
    now: () => Date.now(),
    call: (run) => run(object()),
    fireAlarm: () => object().fireAlarm(),
    evict: () =>
      object()
        .loseMemory()
        .catch(() => undefined),
    hasStorage: async () => (await object().rows()) > 0 || (await object().alarmAt()) !== null,
    alarmAt: () => object().alarmAt(),
  };
}

async function simulated(): Promise<Subject> {
  // With this seed no call is slow.
  const world = new World(4, storage, Date.UTC(2030, 0, 1));
  const { time } = world;
  world.faults.isOn = false;
  clock.now = () => time.now;
  const caller = world.invocation('test');
  const object = () => world.progressObjects.get(ID)!;
  return {
    db: storage.db,
    now: () => time.now,
    async call(run) {
      const namespace = world.progressFor(caller);
      const outcome = { isSettled: false };
      const called = run(namespace.get(namespace.idFromName(ID)) as unknown as ProgressRpc).finally(() => {
        outcome.isSettled = true;
      });
      called.catch(() => undefined);
      while (!outcome.isSettled) await time.runUntil(time.now + 10);
      return called;
    },
    fireAlarm: () => time.runUntil((object().alarmAt ?? time.now) + 1000),
    evict: async () => object().reset(),
    hasStorage: async () => object().hasStorage,
    alarmAt: async () => object().alarmAt ?? null,
  };
}

describe.each([
  ['real', real],
  ['simulated', simulated],
])("a job's object that is %s", (_, start) => {
  let subject: Subject;
  let store: JobStore;
  beforeAll(async () => {
    subject = await start();
    store = createJobStore(subject.db);
    const createdAt = subject.now() - 20 * MINUTE;
    await subject.db
      .prepare(`INSERT INTO accounts (id, name, credit_seconds, created_at) VALUES ('a', 'a', 1e6, 0)`)
      .run();
    const request = { url: 'https://example.com/a.wav' } as DiarizeRequest;
    await store.create({ accountId: 'a', kind: 'diarize', request, id: ID, now: createdAt });
    expect(await startShards(store, ID, { shardCount: 2, durationSeconds: 600 }, createdAt)).toBe(true);
  });

  afterAll(() => {
    clock.now = undefined;
  });

  const fraction = () => subject.call((object) => object.fraction());
  const partDone = (shard: number, tag = TAG) => subject.call((object) => object.partDone(shard, tag));
  const begin = (tag = TAG) => subject.call((object) => object.begin(ID, tag));
  const expectParts = (parts: number, tag = TAG) => subject.call((object) => object.expect(tag, parts));
  const alarmIn = async () => (await subject.alarmAt())! - subject.now();

  it('counts parts in its storage and survives an eviction', async () => {
    expect(await fraction()).toBe(0);
    await begin('other');
    await begin();
    expect(await alarmIn()).toBeGreaterThan(59 * MINUTE);
    await subject.call((object) => object.ready(TAG, 3));
    expect([await partDone(0, 'other'), await partDone(1), await partDone(1)]).toEqual([false, true, true]);
    await subject.call((object) => object.reportIngest(0.5));
    // Half of the recording is read, and one of about two parts is done.
    expect(await fraction()).toBeCloseTo(0.1 * 0.5 + 0.85 * 0.5);
    await expectParts(4, 'other');
    await expectParts(3);
    await subject.call((object) => object.report(0, TAG, 0.5));
    expect(await fraction()).toBeCloseTo(0.1 + (0.85 * 1.5) / 3);
    await subject.evict();
    expect(await fraction()).toBeCloseTo(0.1 + 0.85 / 3);
  });

  it('sets its alarm to the end of the earliest lease', async () => {
    expect(await alarmIn()).toBeGreaterThan(0);
    expect(await alarmIn()).toBeLessThanOrEqual(15 * MINUTE);
  });

  it('sets its next alarm within 10 s after a failed one', async () => {
    for (const shard of [0, 1, 2]) expect(await partDone(shard)).toBe(true);
    await subject.db.prepare('ALTER TABLE jobs RENAME TO jobs_away').run();
    await subject.fireAlarm();
    await expect.poll(alarmIn, POLL).toBeLessThanOrEqual(10_000);
    await subject.db.prepare('ALTER TABLE jobs_away RENAME TO jobs').run();
    await subject.fireAlarm();
    await expect.poll(alarmIn, POLL).toBeGreaterThan(MINUTE);
  });

  it('deletes its storage when an alarm finds the job ended, and does not begin again', async () => {
    expect(await subject.hasStorage()).toBe(true);
    await store.fail(ID, { code: 'x', message: 'x' }, subject.now());
    await subject.fireAlarm();
    await expect.poll(subject.hasStorage, POLL).toBe(false);
    expect([await partDone(1), await fraction()]).toEqual([false, 0]);
    await begin();
    expect(await subject.hasStorage()).toBe(false);
    await subject.evict();
    expect(await fraction()).toBe(0);
  });
});
