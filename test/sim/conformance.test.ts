import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';

/**
 * What the simulation claims of a job's Durable Object, asked of its double and of a real one in workerd: the same
 * story, and the same database of each.
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
import { MINUTE } from './timeline.ts';
import { World } from './world.ts';

const FRONT = `
import { JobProgress as Real } from './worker.js';
export class JobProgress extends Real {
  async ring() { await this.ctx.storage.setAlarm(Date.now()); }
  async alarmAt() { return this.ctx.storage.getAlarm(); }
  async loseMemory() { this.ctx.abort(); }
  async rows() {
    const { sql } = this.ctx.storage;
    const names = sql.exec("SELECT name FROM sqlite_master WHERE type = 'table'").toArray().map(({ name }) => name);
    const ours = names.filter((name) => !name.startsWith('_cf'));
    return ours.flatMap((name) => sql.exec('SELECT * FROM "' + name + '"').toArray()).length;
  }
}`;

interface Real extends ProgressRpc {
  ring(): Promise<void>;
  alarmAt(): Promise<number | null>;
  loseMemory(): Promise<void>;
  rows(): Promise<number>;
}

/** A job's object, a real one or the double. */
interface Subject {
  readonly db: D1Database;
  readonly now: () => number;
  call<T>(run: (object: ProgressRpc) => Promise<T>): Promise<T>;
  /** Lets its alarm come. */
  ring(): Promise<void>;
  loseMemory(): Promise<void>;
  /** Whether it keeps anything, an alarm included. */
  isKept(): Promise<boolean>;
  alarmAt(): Promise<number | null>;
}

const ID = 'job';
const TAG = 'v.0';
/** A busy machine takes its time. */
const SOON = { timeout: 10_000 };
let worker: Awaited<ReturnType<typeof startWorkers>>;
let storage: Storage;
beforeAll(async () => {
  [worker, storage] = await Promise.all([startWorkers({ jobs: FRONT }), startStorage()]);
});
afterAll(async () => {
  await storage?.stop();
  await worker?.stop();
});
async function real(): Promise<Subject> {
  const namespace = await worker.objects('JOB_PROGRESS');
  // The binding's type does not say which class stands behind it; after a failed call another stub is needed.
  const object = () => namespace.get(namespace.idFromName(ID)) as unknown as Real;
  return {
    db: worker.db,
    now: () => Date.now(),
    call: (run) => run(object()),
    ring: () => object().ring(),
    loseMemory: () =>
      object()
        .loseMemory()
        .catch(() => undefined),
    isKept: async () => (await object().rows()) > 0 || (await object().alarmAt()) !== null,
    alarmAt: () => object().alarmAt(),
  };
}

async function simulated(): Promise<Subject> {
  // A seed with which no call is slow.
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
      const outcome = { isThere: false };
      const called = run(namespace.get(namespace.idFromName(ID)) as unknown as ProgressRpc).finally(() => {
        outcome.isThere = true;
      });
      called.catch(() => undefined);
      while (!outcome.isThere) await time.runUntil(time.now + 10);
      return called;
    },
    ring: () => time.runUntil((object().alarmAt ?? time.now) + 1000),
    loseMemory: async () => object().reset(),
    isKept: async () => object().isKept,
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
    const longAgo = subject.now() - 20 * MINUTE;
    await subject.db
      .prepare(`INSERT INTO accounts (id, name, credit_seconds, created_at) VALUES ('a', 'a', 1e6, 0)`)
      .run();
    const request = { url: 'https://example.com/a.wav' } as DiarizeRequest;
    await store.create({ accountId: 'a', kind: 'diarize', request, id: ID, now: longAgo });
    expect(await startShards(store, ID, { shardCount: 2, durationSeconds: 600 }, longAgo)).toBe(true);
  });

  afterAll(() => {
    clock.now = undefined;
  });

  const fraction = () => subject.call((object) => object.fraction());
  const partDone = (shard: number, tag = TAG) => subject.call((object) => object.partDone(shard, tag));
  const begin = (tag = TAG) => subject.call((object) => object.begin(ID, tag));
  const expectParts = (parts: number, tag = TAG) => subject.call((object) => object.expect(tag, parts));
  const alarmIn = async () => (await subject.alarmAt())! - subject.now();

  it('counts parts in what it keeps, whatever becomes of its memory', async () => {
    expect(await fraction()).toBe(0);
    await begin('other');
    await begin();
    expect(await alarmIn()).toBeGreaterThan(59 * MINUTE);
    await subject.call((object) => object.ready(TAG, 3));
    expect([await partDone(0, 'other'), await partDone(1), await partDone(1)]).toEqual([false, true, true]);
    await subject.call((object) => object.reportIngest(0.5));
    // Half of the recording is read, and one of about two parts is there.
    expect(await fraction()).toBeCloseTo(0.1 * 0.5 + 0.85 * 0.5);
    await expectParts(4, 'other');
    await expectParts(3);
    await subject.call((object) => object.report(0, TAG, 0.5));
    expect(await fraction()).toBeCloseTo(0.1 + (0.85 * 1.5) / 3);
    await subject.loseMemory();
    expect(await fraction()).toBeCloseTo(0.1 + 0.85 / 3);
  });

  it('has its alarm at the earliest lease', async () => {
    expect(await alarmIn()).toBeGreaterThan(0);
    expect(await alarmIn()).toBeLessThanOrEqual(15 * MINUTE);
  });

  it('has its next alarm soon after one that fails', async () => {
    for (const shard of [0, 1, 2]) expect(await partDone(shard)).toBe(true);
    await subject.db.prepare('ALTER TABLE jobs RENAME TO jobs_away').run();
    await subject.ring();
    await expect.poll(alarmIn, SOON).toBeLessThanOrEqual(10_000);
    await subject.db.prepare('ALTER TABLE jobs_away RENAME TO jobs').run();
    await subject.ring();
    await expect.poll(alarmIn, SOON).toBeGreaterThan(MINUTE);
  });

  it('keeps nothing, no alarm either, once an alarm finds that its job has ended, and does not begin again', async () => {
    expect(await subject.isKept()).toBe(true);
    await store.fail(ID, { code: 'x', message: 'x' }, subject.now());
    await subject.ring();
    await expect.poll(subject.isKept, SOON).toBe(false);
    expect([await partDone(1), await fraction()]).toEqual([false, 0]);
    await begin();
    expect(await subject.isKept()).toBe(false);
    await subject.loseMemory();
    expect(await fraction()).toBe(0);
  });
});
