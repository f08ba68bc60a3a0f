import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startStorage } from '../../test/helpers/database.ts';
import type { DiarizeRequest } from '../contract/diarize.ts';
import { createJobStore } from '../platform/d1/job-store.ts';
import { createMediaRows } from '../platform/d1/media-rows.ts';
import { createNotedUpload } from '../platform/noted-upload.ts';
import { createObjectStore } from '../platform/r2-objects.ts';
import { expire } from './expire.ts';
import type { JobPorts } from './ports.ts';

it('a sweep deletes more outputs than a busy service makes in five minutes: it stopped at five thousand', async () => {
  const waiting = new Set(Array.from({ length: 20_000 }, (_, i) => `job-${i}`));
  const deleted = new Set<string>();
  const ports = {
    store: {
      expired: async (_before: number, limit: number) => [...waiting].slice(0, limit).map((id) => ({ id })),
      markCleaned: async (ids: readonly string[]) => {
        for (const id of ids) waiting.delete(id);
      },
      deleted: async () => [],
      expiredMedia: async () => [],
      expireIdempotencyKeys: async () => {},
    },
    objects: {
      deleteMany: async (keys: readonly string[]) => {
        for (const key of keys) deleted.add(key);
      },
      folders: async () => [],
      abortUploads: async () => 0,
    },
    log: () => {},
    now: () => 1e12,
    outputTtlMs: 1,
  } as unknown as JobPorts;
  await expire(ports);
  expect(waiting.size).toBe(0);
  expect(deleted.size).toBe(20_000);
});

it('what cannot be deleted does not keep the rest: recordings stayed where an output could not go', async () => {
  const waiting = new Set(['recording']);
  const ports = {
    store: {
      expired: async () => [{ id: 'job' }],
      deleted: async () => [],
      expiredMedia: async () => [...waiting],
      removeMedia: async (keys: readonly string[]) => {
        for (const key of keys) waiting.delete(key);
      },
      expireIdempotencyKeys: async () => {},
    },
    objects: {
      deleteMany: async (keys: readonly string[]) => {
        if (!waiting.has(keys[0])) throw new Error('storage is away');
      },
      folders: async () => [],
      abortUploads: async () => 0,
    },
    log: () => {},
    now: () => 1e12,
    outputTtlMs: 1,
  } as unknown as JobPorts;
  await expect(expire(ports)).rejects.toThrow('storage is away');
  expect(waiting.size).toBe(0);
});

const nothingInStore = {
  expired: async () => [],
  deleted: async () => [],
  expiredMedia: async () => [],
  expireIdempotencyKeys: async () => {},
};

it('a sweep looks at all folders of work, however many: a thousand at a time', async () => {
  const folders = Array.from({ length: 2500 }, (_, i) => `job-${String(i).padStart(5, '0')}`);
  const left = new Set(folders.map((id) => `work/${id}/source`));
  const ports = {
    store: {
      ...nothingInStore,
      unfinished: async () => new Set<string>(),
    },
    objects: {
      list: async (prefix: string) => (left.has(`${prefix}source`) ? [`${prefix}source`] : []),
      deleteMany: async (keys: readonly string[]) => {
        for (const key of keys) left.delete(key);
      },
      folders: async (_prefix: string, limit: number, after = '') => folders.filter((id) => id > after).slice(0, limit),
      uploadedAt: async () => undefined,
      abortUploads: async () => 0,
    },
    log: () => {},
    now: () => 1e12,
    outputTtlMs: 1,
  } as unknown as JobPorts;
  await expire(ports);
  expect(left.size).toBe(0);
});

it('a sweep drops what an ended job was copying or writing once no step can write any more, and other uploads after two days', async () => {
  const now = 1e12;
  const minutesAgo = (minutes: number) => now - minutes * 60_000;
  const begun: [key: string, begunAt: number][] = [
    ['work/ended/source-1', minutesAgo(19)],
    ['work/ended/source-2', minutesAgo(21)],
    ['work/running/source-1', minutesAgo(21)],
    ['media/account/x', minutesAgo(21)],
    ['work/running/source-2', minutesAgo(48 * 60 + 1)],
    ['outputs/ended.json', minutesAgo(19)],
    ['outputs/ended.json', minutesAgo(21)],
    ['outputs/running.json', minutesAgo(21)],
    ['media/account/y', minutesAgo(48 * 60 + 1)],
  ];
  const dropped: string[] = [];
  const ports = {
    store: {
      ...nothingInStore,
      unfinished: async (ids: readonly string[]) => new Set(ids.filter((id) => id === 'running')),
    },
    objects: {
      deleteMany: async () => {},
      folders: async () => [],
      abortUploads: async (isInVain: (key: string, begunAt: number) => Promise<boolean>) => {
        for (const [key, begunAt] of begun) if (await isInVain(key, begunAt)) dropped.push(key);
        return dropped.length;
      },
    },
    log: () => {},
    now: () => now,
    outputTtlMs: 1,
  } as unknown as JobPorts;
  await expire(ports);
  expect(dropped).toEqual(['work/ended/source-2', 'work/running/source-2', 'outputs/ended.json', 'media/account/y']);
});

describe('a sweep of a real database and bucket', () => {
  const MINUTE = 60_000;
  const HOUR = 60 * MINUTE;
  /** The bucket stamps its objects with the time of the machine. */
  const NOW = Date.now();
  let storage: Awaited<ReturnType<typeof startStorage>>;
  let store: JobPorts['store'];
  let made = 0;
  beforeAll(async () => {
    storage = await startStorage();
    store = createJobStore(storage.db);
    await storage.db
      .prepare(`INSERT INTO accounts (id, name, credit_seconds, created_at) VALUES ('a', 'a', 1000, 0)`)
      .run();
  });
  afterAll(() => storage?.stop());

  const sweep = (now: number) => {
    const objects = createObjectStore(storage.bucket);
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
    await store.start(id, { shardCount: 1, durationSeconds: 60 }, NOW);
    return id;
  }

  it('takes the work of jobs that have ended or never were, and none of one that works', async () => {
    const [works, ended] = [await runningJob(), await runningJob()];
    await store.fail(ended, { code: 'x', message: 'x' }, NOW);
    const kept = [`work/${works}/plan-v.json`, `work/${works}/source`, `work/${works}/url`];
    await put(...kept, `work/${ended}/part-v-00000`, `work/${ended}/source`, 'work/unknown/source');
    await sweep(NOW + 72 * HOUR);
    expect(await keysBelow('work/')).toEqual(kept);
    await storage.bucket.delete(kept);
  });

  it('leaves what a request carries along for some minutes: the row of its job is written a moment later', async () => {
    const carried = ['work/soon-1/url', 'work/soon-2/voiceprints.json'];
    await put(...carried);
    await sweep(Date.now() + 4 * MINUTE);
    expect(await keysBelow('work/')).toEqual(carried);
    await sweep(Date.now() + 6 * MINUTE);
    expect(await keysBelow('work/')).toEqual([]);
  });

  it('takes outputs and idempotency keys after a day, to the millisecond', async () => {
    const id = await runningJob('day');
    await store.succeed(id, { outputKey: `outputs/${id}.json`, billedSeconds: 60, creditSeconds: 60 }, NOW);
    await put(`outputs/${id}.json`);
    await sweep(NOW + 24 * HOUR - 1);
    expect([await keysBelow('outputs/'), await rowCount('idempotency_keys')]).toEqual([[`outputs/${id}.json`], 1]);
    await sweep(NOW + 24 * HOUR);
    expect([await keysBelow('outputs/'), await rowCount('idempotency_keys')]).toEqual([[], 0]);
  });

  it('takes what a step at its last line still writes for a deleted job, for as long as one can run', async () => {
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

  it('takes a recording with its row, but not before jobs that were accepted in time have read it', async () => {
    await createMediaRows(storage.db).claim('a', 'media/a/1', NOW, NOW + 48 * HOUR);
    await put('media/a/1');
    await sweep(NOW + 49 * HOUR);
    expect([await keysBelow('media/'), await rowCount('media')]).toEqual([['media/a/1'], 1]);
    await sweep(NOW + 50 * HOUR);
    expect([await keysBelow('media/'), await rowCount('media')]).toEqual([[], 0]);
  });

  it('aborts an upload that was cut off, and none that may still be written', async () => {
    const upload = await createNotedUpload(storage.bucket, 'media/a/long');
    await sweep(Date.now() + 40 * HOUR);
    const part = await upload.uploadPart(1, new Uint8Array(8));
    await sweep(Date.now() + 49 * HOUR);
    expect(await keysBelow('uploads/')).toEqual([]);
    await expect(upload.complete([part])).rejects.toThrow();
  });
});
