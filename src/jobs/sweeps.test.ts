import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startStorage } from '../../test/helpers/storage.ts';
import type { DiarizeRequest } from '../contract/diarize.ts';
import { createJobStore } from '../platform/d1/job-rows.ts';
import { createLiveStore } from '../platform/d1/live-store.ts';
import { createMediaRows } from '../platform/d1/media-rows.ts';
import { createUsage } from '../platform/d1/usage-records.ts';
import { createQueues } from '../platform/queues.ts';
import { createObjectStore } from '../platform/r2-objects.ts';
import { createNotedUpload } from '../platform/r2-uploads.ts';
import type { JobPorts, ObjectStore, Queued } from './job-ports.ts';
import { expire, failOverdue, resendLost } from './sweeps.ts';

describe('a sweep', () => {
  const MINUTE = 60_000;
  const HOUR = 60 * MINUTE;
  /** Real time, because the bucket stamps its objects with it. */
  const NOW = Date.now();
  let store: JobPorts['store'];
  let made = 0;
  beforeAll(async () => {
    store = createJobStore(storage.db);
    await storage.db.prepare(`UPDATE accounts SET credit_seconds = 100000, subscribed = 0`).run();
  });
  afterAll(async () => {
    await storage.empty();
    await insertAccount();
  });

  const sweep = (now: number, changes: Partial<ObjectStore> = {}) => {
    const objects = { ...createObjectStore(storage.bucket), ...changes };
    return expire({ store, objects, log: () => {}, now: () => now, outputTtlMs: 24 * HOUR } as unknown as JobPorts);
  };
  const put = async (...keys: string[]) => {
    for (const key of keys) await storage.bucket.put(key, 'x');
  };
  const keysBelow = async (prefix: string) => (await storage.bucket.list({ prefix })).objects.map(({ key }) => key);
  const rowCount = (table: string) => storage.db.prepare(`SELECT COUNT(*) AS rows FROM ${table}`).first('rows');
  async function runningJob(idempotencyKey?: string): Promise<string> {
    const id = `swept-${made++}`;
    const request = { url: 'https://example.com/a.wav' } as DiarizeRequest;
    const idempotency = idempotencyKey === undefined ? undefined : { key: idempotencyKey, bodyHash: 'h' };
    await store.create({ accountId: 'a', kind: 'diarize', request, idempotency, id, now: NOW });
    await store.start(id, NOW);
    return id;
  }
  const manyJobs = (name: string, count: number, status: string) =>
    storage.db
      .prepare(
        `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?2)
         INSERT INTO jobs (id, account_id, kind, status, request, created_at, updated_at, completed_at, output_key)
         SELECT ?1 || '-' || n, 'a', 'diarize', ?3, '{}', 0, 0, CASE WHEN ?3 <> 'running' THEN n END, 'outputs/' || ?1 || '-' || n || '.json' FROM numbers`,
      )
      .bind(name, count, status)
      .run();

  it('deletes jobs a month after their end, and keeps their usage per day and kind', async () => {
    const DAY = 24 * HOUR;
    const { perDay } = createUsage(storage.db);
    await storage.db.batch(['jobs', 'usage_records'].map((table) => storage.db.prepare(`DELETE FROM ${table}`)));
    const ended = [await runningJob(), await runningJob(), await runningJob()];
    for (const [day, id] of ended.entries()) {
      const outcome = { outputKey: `outputs/${id}.json`, billedSeconds: 60.5, creditSeconds: 60.5 };
      await store.succeed(id, { ...outcome, transcribedSeconds: 60 }, NOW + Math.floor(day / 2) * DAY);
    }
    const deleted = await runningJob();
    await store.remove('a', deleted, NOW);
    const active = await runningJob();
    const before = await perDay('a', { from: 0, to: NOW + 9 * DAY });
    expect(before.map(({ jobs }) => jobs)).toEqual([2, 2, 1, 1]);
    await sweep(NOW + 30 * DAY - 1);
    expect([await rowCount('jobs'), await rowCount('usage_records')]).toEqual([5, 6]);
    await sweep(NOW + 30 * DAY);
    expect([await rowCount('jobs'), await rowCount('usage_records')]).toEqual([2, 2]);
    expect(await perDay('a', { from: 0, to: NOW + 9 * DAY })).toEqual(before);
    await sweep(NOW + 40 * DAY);
    await sweep(NOW + 40 * DAY);
    expect([await rowCount('jobs'), await rowCount('usage_records')]).toEqual([1, 0]);
    expect(await perDay('a', { from: 0, to: NOW + 9 * DAY })).toEqual(before);
    expect(await store.find(active)).toBeDefined();
  });

  it('deletes the working data of ended and unknown jobs, not of running ones', async () => {
    const [active, ended] = [await runningJob(), await runningJob()];
    await store.fail(ended, { code: 'x', message: 'x' }, NOW);
    const kept = [`work/${active}/ingest-v.json`, `work/${active}/source`, `work/${active}/url`];
    await put(...kept, `work/${ended}/part-v-00000`, `work/${ended}/source`, 'work/unknown/source');
    await sweep(NOW + 72 * HOUR);
    expect(await keysBelow('work/')).toEqual(kept);
    await storage.bucket.delete(kept);
  });

  it('keeps inline data of a request for five minutes without a job', async () => {
    const inline = ['work/soon-1/url', 'work/soon-2/voiceprints.json'];
    await put(...inline);
    await sweep(Date.now() + 4 * MINUTE);
    expect(await keysBelow('work/')).toEqual(inline);
    await sweep(Date.now() + 6 * MINUTE);
    expect(await keysBelow('work/')).toEqual([]);
  });

  it('deletes outputs and idempotency keys after exactly a day', async () => {
    const id = await runningJob('day');
    await store.succeed(id, { outputKey: `outputs/${id}.json`, billedSeconds: 60, creditSeconds: 60 }, NOW);
    await put(`outputs/${id}.json`);
    await sweep(NOW + 24 * HOUR - 1);
    expect([await keysBelow('outputs/'), await rowCount('idempotency_keys')]).toEqual([[`outputs/${id}.json`], 1]);
    await sweep(NOW + 24 * HOUR);
    expect([await keysBelow('outputs/'), await rowCount('idempotency_keys')]).toEqual([[], 0]);
  });

  it('deletes late outputs of a deleted job for as long as a step can run', async () => {
    const id = await runningJob();
    await store.remove('a', id, NOW);
    for (const minutes of [1, 14, 16]) {
      await put(`outputs/${id}.json`);
      await sweep(NOW + minutes * MINUTE);
      expect(await keysBelow('outputs/')).toEqual([]);
    }
    await sweep(NOW + HOUR);
    expect((await store.deleted(1000)).map((job) => job.id)).not.toContain(id);
  });

  it('deletes an upload and its row two hours after it expired', async () => {
    await createMediaRows(storage.db).claim('a', 'media/a/1', NOW, NOW + 48 * HOUR);
    await put('media/a/1');
    await sweep(NOW + 49 * HOUR);
    expect([await keysBelow('media/'), await rowCount('media')]).toEqual([['media/a/1'], 1]);
    await sweep(NOW + 50 * HOUR);
    expect([await keysBelow('media/'), await rowCount('media')]).toEqual([[], 0]);
  });

  it.each([
    ['through the Worker', 'waits.wav', undefined],
    ['to an address of the bucket', undefined, 'waits.wav'],
  ])('keeps an upload made %s while an unfinished job needs it', async (_, published, claimed) => {
    const rows = createMediaRows(storage.db);
    const upload = async (key: string, of: string | undefined, at: number) => {
      await rows.claim('a', key, at, at + 48 * HOUR, of);
      if (published) await rows.publish('a', published, key, 1, at, at + 48 * HOUR);
      await put(key);
    };
    await upload('media/a/needed', claimed, NOW - HOUR);
    const request = { url: 'media://waits.wav' } as DiarizeRequest;
    const id = `waits-${made++}`;
    await store.create({ accountId: 'a', kind: 'diarize', request, id, now: NOW });
    // The job needs neither a later upload of the same name nor one of another name.
    await upload('media/a/later', claimed, NOW + 100 * HOUR);
    await rows.claim('a', 'media/a/other', NOW, NOW + 48 * HOUR, 'other.wav');
    await put('media/a/other');
    await sweep(NOW + 99 * HOUR);
    expect(await keysBelow('media/')).toEqual(['media/a/later', 'media/a/needed']);
    await store.fail(id, { code: 'x', message: 'x' }, NOW);
    await sweep(NOW + 99 * HOUR);
    expect(await keysBelow('media/')).toEqual(['media/a/later']);
    await sweep(NOW + 200 * HOUR);
    expect([await keysBelow('media/'), await rowCount('media')]).toEqual([[], 0]);
  });

  it('deletes rows of live streams a month after their end, not of open ones', async () => {
    const live = createLiveStore(storage.db);
    for (const id of ['ended', 'open']) {
      await live.create({ id, accountId: 'a', input: {}, now: NOW } as Parameters<typeof live.create>[0], 10);
      await live.start(id, NOW);
    }
    await live.end('ended', { status: 'done', receivedSeconds: 60 }, NOW);
    await sweep(NOW + 30 * 24 * HOUR - 1);
    expect(await rowCount('live_streams')).toBe(2);
    await sweep(NOW + 30 * 24 * HOUR);
    expect([await live.find('ended'), (await live.find('open'))?.status]).toEqual([undefined, 'running']);
  });

  it('aborts an incomplete upload after 48 hours, not earlier', async () => {
    const upload = await createNotedUpload(storage.bucket, 'media/a/long');
    await sweep(Date.now() + 40 * HOUR);
    const part = await upload.uploadPart(1, new Uint8Array(8));
    await sweep(Date.now() + 49 * HOUR);
    expect(await keysBelow('uploads/')).toEqual([]);
    await expect(upload.complete([part])).rejects.toThrow();
  });

  it('deletes more than five thousand outputs in one sweep', async () => {
    const jobs = 6000;
    await manyJobs('busy', jobs, 'succeeded');
    await put('outputs/busy-1.json', `outputs/busy-${jobs}.json`);
    await sweep(NOW);
    expect(await keysBelow('outputs/busy-')).toEqual([]);
    expect(await store.expired(NOW, 1)).toEqual([]);
  });

  it('continues with other kinds of objects when deleting outputs fails', async () => {
    const id = await runningJob();
    await store.succeed(id, { outputKey: `outputs/${id}.json`, billedSeconds: 60, creditSeconds: 60 }, NOW);
    await createMediaRows(storage.db).claim('a', 'media/a/2', NOW, NOW + 48 * HOUR);
    await put(`outputs/${id}.json`, 'media/a/2');
    const deleteMany = async (keys: readonly string[]) => {
      if (keys.some((key) => key.startsWith('outputs/'))) throw new Error('storage is unavailable');
      await storage.bucket.delete([...keys]);
    };
    await expect(sweep(NOW + 50 * HOUR, { deleteMany })).rejects.toThrow('storage is unavailable');
    expect([await keysBelow('media/'), await keysBelow(`outputs/${id}`)]).toEqual([[], [`outputs/${id}.json`]]);
    await sweep(NOW + 50 * HOUR);
    expect(await keysBelow(`outputs/${id}`)).toEqual([]);
  });

  it('checks more than a thousand folders of working data', async () => {
    const working = Array.from({ length: 1000 }, (_, i) => `work/many-${i + 1}/source`);
    await manyJobs('many', working.length, 'running');
    await storage.putAll([...working, 'work/more/source']);
    await sweep(NOW);
    expect(await keysBelow('work/more')).toEqual([]);
    expect(await keysBelow('work/many-1000/')).toEqual(['work/many-1000/source']);
  });

  it('aborts uploads of ended jobs after 20 minutes, other uploads after two days', async () => {
    const [active, ended] = [await runningJob(), await runningJob()];
    await store.cancel(ended, { code: 'x', message: 'x' }, NOW);
    const ofJobs = [ended, active].flatMap((id) => [`work/${id}/source`, `outputs/${id}.json`]);
    const open = new Map<string, Awaited<ReturnType<typeof createNotedUpload>>>();
    for (const key of [...ofJobs, 'media/account/x']) open.set(key, await createNotedUpload(storage.bucket, key));
    const begun = Date.now();
    const notes = async () => (await keysBelow('uploads/')).length;
    await sweep(begun + 19 * MINUTE);
    expect(await notes()).toBe(5);
    await sweep(begun + 21 * MINUTE);
    expect(await notes()).toBe(3);
    for (const [key, upload] of open) {
      const written = upload.uploadPart(1, new Uint8Array(8)).then(() => true);
      expect(await written.catch(() => false), key).toBe(!key.includes(ended));
    }
    await sweep(begun + 47 * HOUR);
    expect(await notes()).toBe(3);
    await sweep(begun + 48 * HOUR + MINUTE);
    expect(await notes()).toBe(0);
  });
});

/**
 * The following tests use real queues and a real database, whose order of the leases decides which messages are sent.
 */
const NOW = 1_800_000_000_000;
const LONG_AGO = NOW - 3_600_000;
const DAY = 24 * 3_600_000;
let storage: Awaited<ReturnType<typeof startStorage>>;
let sent: Queued[];
let requests: number;
/** Jobs whose objects were asked to send all their messages again. */
let resent: string[];
let ports: JobPorts;
let made = 0;
const insertAccount = () =>
  storage.db.prepare(`INSERT INTO accounts (id, name, subscribed, created_at) VALUES ('a', 'a', 1, 0)`).run();
beforeAll(async () => {
  storage = await startStorage();
  await insertAccount();
});
afterAll(() => storage?.stop());

beforeEach(async () => {
  await storage.db.prepare('DELETE FROM outbox').run();
  sent = [];
  requests = 0;
  resent = [];
  const prepare = (sql: string) => {
    requests++;
    return storage.db.prepare(sql);
  };
  const db = Object.create(storage.db, {
    prepare: { value: prepare },
    batch: { value: (statements: D1PreparedStatement[]) => storage.db.batch(statements) },
  }) as D1Database;
  const queue = createQueues(storage.queues);
  ports = {
    store: createJobStore(db),
    queue: {
      send: queue.send,
      sendAll: async (messages: readonly Queued[]) => {
        requests++;
        await queue.sendAll(messages);
        sent.push(...messages);
      },
    },
    progress: {
      resend: async (jobId: string) => void resent.push(jobId),
      end: async () => undefined,
    } as unknown as JobPorts['progress'],
    objects: createObjectStore(storage.bucket),
    log: () => {},
    now: () => NOW,
  } as Partial<JobPorts> as JobPorts;
});

/** Creates messages of `count` running jobs whose leases ended long ago. */
async function running(count: number): Promise<string> {
  const id = `job-${made++}`;
  await storage.db
    .prepare(
      `INSERT INTO outbox (id, job_id, queue, body, due_at, lease_until)
       WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ?2 - 1)
       SELECT ?1 || '-' || i || '/analyse', ?1 || '-' || i, 'priority',
         json_object('step', 'analyse', 'jobId', ?1 || '-' || i), ?3, ?3 FROM n`,
    )
    .bind(id, count, LONG_AGO)
    .run();
  requests = 0;
  return id;
}

/** Creates the message of a webhook's last attempt. */
async function webhook(dueAt: number) {
  const message = { step: 'webhook', jobId: `notified-${made++}`, attempt: 3 } as const;
  await storage.db
    .prepare(
      `INSERT INTO outbox (id, job_id, queue, body, due_at, lease_until) VALUES (?1 || '/webhook', ?1, 'webhooks', ?2, ?3, ?4)`,
    )
    .bind(message.jobId, JSON.stringify(message), dueAt, dueAt + 900_000)
    .run();
  return message;
}
const messages = () => sent.map(({ message }) => message);

it('sends more than two thousand messages after a restart', async () => {
  await running(2500);
  expect(await resendLost(ports, Number.POSITIVE_INFINITY)).toBe(2500);
  expect(new Set(messages().map((message) => JSON.stringify(message))).size).toBe(2500);
});

it('sends lost messages in bounded batches with few requests', async () => {
  await running(2500);
  expect(await resendLost(ports, NOW)).toBe(2000);
  expect(requests).toBeLessThanOrEqual(60);
  expect(await resendLost(ports, NOW)).toBe(500);
  expect(await resendLost(ports, NOW)).toBe(0);
});

it('sends a webhook that is due after all other messages after a restart', async () => {
  for (const count of [99, 100, 150, 250]) {
    await storage.db.prepare('DELETE FROM outbox').run();
    await running(count);
    const message = await webhook(NOW + 299_000);
    expect(await resendLost(ports, Number.POSITIVE_INFINITY)).toBe(count + 1);
    expect(messages()).toContainEqual(message);
  }
});

it('delays messages that are not due yet after a restart', async () => {
  await running(1);
  await webhook(NOW + 200_500);
  await resendLost(ports, Number.POSITIVE_INFINITY);
  expect(sent.map(({ delaySeconds }) => delaySeconds)).toEqual([0, 201]);
});

it('asks the objects of jobs to send their shards again after a restart', async () => {
  const id = await running(3);
  await resendLost(ports, Number.POSITIVE_INFINITY);
  expect(resent.sort()).toEqual([`${id}-0`, `${id}-1`, `${id}-2`]);
  resent.length = 0;
  await storage.db.prepare('UPDATE outbox SET lease_until = 0').run();
  await resendLost(ports, NOW);
  expect(resent).toEqual([]);
});

it('fails jobs that have been running for a day, and no others', async () => {
  const request = { url: 'https://example.com/a.wav' } as DiarizeRequest;
  for (const [id, startedAt] of [
    ['old', NOW - DAY],
    ['new', NOW - DAY + 1],
  ] as const) {
    await ports.store.create({ accountId: 'a', kind: 'diarize', request, id, now: NOW - 2 * DAY });
    await ports.store.start(id, startedAt);
  }
  await failOverdue(ports);
  expect(await ports.store.find('old')).toMatchObject({ status: 'failed', error: { code: 'internal' } });
  expect(await ports.store.find('new')).toMatchObject({ status: 'running' });
});
