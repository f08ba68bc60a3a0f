import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { DiarizeRequest } from '../src/contract/diarize.ts';
import { saveIngest } from '../src/jobs/ingest-state.ts';
import { workOf } from '../src/jobs/keys.ts';
import type { JobStore } from '../src/jobs/ports.ts';
import { createJobStore } from '../src/platform/d1/job-store.ts';
import { nameOfModels, packOfBuild } from '../src/platform/models-in-use.ts';
import type { ProgressRpc } from '../src/platform/progress.ts';
import { createObjectStore } from '../src/platform/r2-objects.ts';
import { startShards } from '../test/helpers/database.ts';
import { ingestedState } from '../test/helpers/job-world.ts';
import { startWorkers } from '../test/helpers/workerd.ts';

/** The object of a job in workerd, on its own storage and a real database; nobody works off what it sends. */
const FRONT = `
import { JobProgress as Real } from './worker.js';
const machine = Date.now;
export class JobProgress extends Real {
  isBroken = false;
  alarm() {
    if (this.isBroken) throw new Error('a deployment that is broken');
    return super.alarm();
  }
  async alarmAt() { return this.ctx.storage.getAlarm(); }
  async setAlarm(at) { await this.ctx.storage.setAlarm(at); }
  async loseAlarm() { await this.ctx.storage.deleteAlarm(); }
  async breakAlarm() { this.isBroken = true; await this.ctx.storage.setAlarm(machine()); }
  async mendAlarm(later) { this.isBroken = false; Date.now = () => machine() + later; }
  async loseMemory() { this.ctx.abort(); }
  async tables() {
    return this.ctx.storage.sql.exec("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '\\\\_cf%' ESCAPE '\\\\'").toArray().map(({ name }) => name);
  }
}`;

interface Opened extends ProgressRpc {
  alarmAt(): Promise<number | null>;
  setAlarm(at: number): Promise<void>;
  loseAlarm(): Promise<void>;
  /** From now on the alarm fails. */
  breakAlarm(): Promise<void>;
  /** It fails no longer; the clock of the service goes fast by so many milliseconds. */
  mendAlarm(laterMs: number): Promise<void>;
  /** The call fails. */
  loseMemory(): Promise<void>;
  tables(): Promise<string[]>;
}

const WORK = workOf(nameOfModels(packOfBuild()));
const TAG = `${WORK}.0`;
const MINUTE = 60_000;
const SHARDS = 2;
/** Shares of the whole that the reading of a recording and its analysis are shown as. */
const INGESTED = 0.1;
const ANALYSED = 0.85;
/** A busy machine takes its time. */
const SOON = { timeout: 10_000 };

let worker: Awaited<ReturnType<typeof startWorkers>>;
let store: JobStore;
let objects: DurableObjectNamespace;
beforeAll(async () => {
  worker = await startWorkers({ jobs: FRONT });
  store = createJobStore(worker.db);
  objects = await worker.objects('JOB_PROGRESS');
  await worker.db
    .prepare(`INSERT INTO accounts (id, name, credit_seconds, created_at) VALUES ('a', 'a', 1e6, 0)`)
    .run();
});
afterAll(() => worker?.stop());

// The binding's type does not say which class stands after it.
const objectOf = (id: string) => objects.get(objects.idFromName(id)) as unknown as Opened;

/** A running job of two parts whose messages were sent so long ago that they count as lost. */
async function begun() {
  const id = randomUUID();
  const request = { url: 'https://example.com/a.wav' } as DiarizeRequest;
  const longAgo = Date.now() - 20 * MINUTE;
  await store.create({ accountId: 'a', kind: 'diarize', request, id, now: longAgo });
  expect(await startShards(store, id, { shardCount: SHARDS, durationSeconds: 600 }, longAgo)).toBe(true);
  const object = objectOf(id);
  await object.begin(id, TAG);
  await object.expect(id, TAG, SHARDS);
  return { id, object };
}

const messages = async (id: string) => (await store.overdue(Infinity, 100, { jobId: id })).rows;
const steps = async (id: string) => (await messages(id)).map((row) => row.id.slice(id.length)).sort();
/** How many of a job's messages have been sent, a moment ago. */
const sent = async (id: string) =>
  (await messages(id)).filter(({ leaseUntil }) => leaseUntil > Date.now() + 10 * MINUTE).length;

describe('the parts of a job', () => {
  it('count once each, and only those of the job, its file and this version; the last has it assembled', async () => {
    const { id, object } = await begun();
    expect(await object.partDone('other', 0, TAG)).toBe(false);
    expect(await object.partDone(id, SHARDS, TAG)).toBe(false);
    expect(await object.partDone(id, 0, `${WORK}-older.0`)).toBe(false);
    expect(await object.partDone(id, 0, `${WORK}.1`)).toBe(false);
    expect(await object.fraction()).toBeCloseTo(INGESTED);
    await object.report(0, 0.9);
    for (let copy = 0; copy < 2; copy++) expect(await object.partDone(id, 0, TAG)).toBe(true);
    expect(await object.fraction()).toBeCloseTo(INGESTED + 0.9 * ANALYSED * 0.5, 1);
    expect(await steps(id)).toEqual(['/shard/0', '/shard/1']);
    for (let copy = 0; copy < 2; copy++) expect(await object.partDone(id, 1, TAG)).toBe(true);
    expect(await object.fraction()).toBeCloseTo(0.95);
    expect(await steps(id)).toEqual(['/assemble', '/shard/0', '/shard/1']);
  });

  it('are still counted after the object was lost and while the recording is read; progress of others is not', async () => {
    const { id, object } = await begun();
    await object.partDone(id, 0, TAG);
    const shownOf = (parts: number) => INGESTED + (ANALYSED * parts) / SHARDS;
    for (const [told, shown] of [
      [-1, 1],
      [0.5, 1.5],
      [7, 2],
      // It never falls.
      [0.5, 2],
    ] as const) {
      await object.report(1, told);
      expect(await object.fraction()).toBeCloseTo(shownOf(shown));
    }
    await object.loseMemory().catch(() => undefined);
    const again = objectOf(id);
    expect(await again.fraction()).toBeCloseTo(shownOf(1));
    await again.begin(id, TAG);
    expect(await again.fraction()).toBeCloseTo(shownOf(1));
    expect(await again.partDone(id, 1, TAG)).toBe(true);
    expect(await steps(id)).toContain('/assemble');
  });

  it('are of a file: of one that is read again none is there, and those of the first are left out', async () => {
    const { id, object } = await begun();
    for (let shard = 0; shard < SHARDS - 1; shard++) await object.partDone(id, shard, TAG);
    const anew = `${WORK}.1`;
    await object.begin(id, anew);
    // How many there were of the first says nothing.
    await object.expect(id, TAG, 1);
    expect(await object.partDone(id, 1, TAG)).toBe(false);
    expect(await object.partDone(id, 5, anew)).toBe(true);
    expect(await steps(id)).not.toContain('/assemble');
    await object.expect(id, anew, SHARDS);
    expect(await steps(id)).not.toContain('/assemble');
  });

  it('wait for the end of the recording: only then it is known which one is the last', async () => {
    const { id, object } = await begun();
    const anew = `${WORK}.1`;
    await object.begin(id, anew);
    for (let shard = 0; shard < SHARDS; shard++) expect(await object.partDone(id, shard, anew)).toBe(true);
    expect(await steps(id)).not.toContain('/assemble');
    await object.expect(id, anew, SHARDS);
    expect(await steps(id)).toContain('/assemble');
  });
});

it('the progress of a job rises with its recording and with its parts, and never falls', async () => {
  const id = randomUUID();
  const object = objectOf(id);
  expect(await object.fraction()).toBe(0);
  await object.begin(id, TAG);
  const shown: number[] = [];
  const look = async () => void shown.push(await object.fraction());
  await look();
  for (const share of [0.25, 0.5, 0.4, 2, 0.5]) {
    await object.reportIngest(share);
    await look();
  }
  await object.report(0, 0.5);
  await look();
  await object.partDone(id, 0, TAG);
  await look();
  await object.expect(id, TAG, 4);
  await look();
  await object.partDone(id, 1, TAG);
  await look();
  expect([...shown].sort((a, b) => a - b)).toEqual(shown);
  expect(shown.slice(0, 3)).toEqual([0, 0.025, 0.05]);
  expect(shown.every((share) => share >= 0 && share <= 0.95)).toBe(true);
});

describe('the alarm of a job', () => {
  const ring = (object: Opened) => object.setAlarm(Date.now());

  it('sends again what was lost, and comes again', async () => {
    const { id, object } = await begun();
    expect(await sent(id)).toBe(0);
    await ring(object);
    await expect.poll(() => sent(id), SOON).toBe(SHARDS);
    expect(await object.alarmAt()).toBeGreaterThan(Date.now() + MINUTE / 4);
  });

  it('begins all parts again of a job that runs without any message', async () => {
    const { id, object } = await begun();
    const ports = { objects: createObjectStore(worker.bucket), work: WORK };
    await saveIngest(ports, id, ingestedState({ shardCount: SHARDS }), undefined);
    await worker.db.prepare('DELETE FROM outbox WHERE job_id = ?').bind(id).run();
    await ring(object);
    await expect.poll(() => steps(id), SOON).toEqual(['/shard/0', '/shard/1']);
  });

  it('has the recording read of a job that runs without any message and was not read to its end', async () => {
    const { id, object } = await begun();
    await worker.db.prepare('DELETE FROM outbox WHERE job_id = ?').bind(id).run();
    await ring(object);
    await expect.poll(() => steps(id), SOON).toEqual(['/ingest']);
  });

  it('asks for the assembly of a job whose last part died before it could', async () => {
    const { id, object } = await begun();
    for (let shard = 0; shard < SHARDS; shard++) await object.partDone(id, shard, TAG);
    await worker.db.prepare('DELETE FROM outbox WHERE id = ?').bind(`${id}/assemble`).run();
    await ring(object);
    await expect.poll(() => steps(id), SOON).toContain('/assemble');
  });

  it.each(['failed', 'deleted'])(
    'erases the object of a job that has %s, and nothing counts there any more',
    async (end) => {
      const { id, object } = await begun();
      await object.partDone(id, 0, TAG);
      expect(await object.tables()).toHaveLength(SHARDS);
      if (end === 'failed') await store.fail(id, { code: 'x', message: 'x' }, Date.now());
      else await store.remove('a', id, Date.now());
      await ring(object);
      await expect.poll(() => object.tables(), SOON).toEqual([]);
      expect(await object.alarmAt()).toBeNull();
      expect(await object.partDone(id, 1, TAG)).toBe(false);
      expect(await object.fraction()).toBe(0);
    },
  );
});

describe('where the alarm of a job was given up, the next part looks after it: what was lost waited for the sweep', () => {
  it('and where it was not, the alarm does', async () => {
    const { id, object } = await begun();
    const alarmAt = await object.alarmAt();
    await object.partDone(id, 0, TAG);
    expect([await object.alarmAt(), await sent(id)]).toEqual([alarmAt, 0]);
  });

  it('without a trace', async () => {
    const { id, object } = await begun();
    await object.loseAlarm();
    await object.partDone(id, 0, TAG);
    expect(await sent(id)).toBe(SHARDS);
    expect(await object.alarmAt()).toBeGreaterThan(Date.now());
  });

  it('though its time is still told', async () => {
    const { id, object } = await begun();
    await object.breakAlarm();
    const brokenAt = Date.now();
    await expect.poll(() => object.alarmAt(), SOON).toBeLessThanOrEqual(brokenAt);
    try {
      await object.mendAlarm(10 * MINUTE);
      await object.partDone(id, 0, TAG);
    } finally {
      await object.mendAlarm(0);
    }
    expect(await sent(id)).toBe(SHARDS);
    expect(await object.alarmAt()).toBeGreaterThan(brokenAt + 9 * MINUTE);
  });
});
