import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { startShards } from '../../test/helpers/database.ts';
import { ingestedState } from '../../test/helpers/job-world.ts';
import { startStorage } from '../../test/helpers/storage.ts';
import { createJobStore } from '../platform/d1/job-rows.ts';
import { createObjectStore } from '../platform/r2-objects.ts';
import type { CreateJob } from './app-services.ts';
import { createJob } from './create-job.ts';
import { deliverWebhook } from './deliver-webhook.ts';
import { cancelJob, deleteJob } from './end-job.ts';
import { handleMessage } from './handle-message.ts';
import { saveIngest } from './ingest-state.ts';
import type { Message, WebhookMessage } from './job-messages.ts';
import type { JobPorts, Queued } from './job-ports.ts';
import type { JobStore } from './job-store.ts';
import { Mutex } from './mutex.ts';
import { expire } from './sweeps.ts';
import { ingestKey, outputKey, partKey } from './work-keys.ts';

/** Concurrent and crashing steps at the worst moments, on a real database and a real bucket. */

const SHARDS = 3;
const SECONDS = 61;
const STATE = ingestedState({ totalSamples: SECONDS * 16_000, shardCount: SHARDS });
const WORK = 'v2';
const TAG = `${WORK}.0`;
const OUTCOME = { outputKey: 'o', billedSeconds: SECONDS, creditSeconds: SECONDS };

let storage: Awaited<ReturnType<typeof startStorage>>;
let made = 0;
beforeAll(async () => {
  storage = await startStorage();
});
afterAll(() => storage?.stop());

let account: string;
let id: string;
let now: number;
let sent: Message[];
/** Numbers of shards that were passed to the job's object. */
let expected: number[];
let ports: JobPorts;
beforeEach(async () => {
  account = `account-${made++}`;
  id = `job-${account}`;
  now = Date.now();
  sent = [];
  expected = [];
  await storage.db
    .prepare('INSERT INTO accounts (id, name, credit_seconds, created_at) VALUES (?1, ?1, 100, 0)')
    .bind(account)
    .run();
  ports = {
    store: createJobStore(storage.db),
    objects: createObjectStore(storage.bucket),
    work: WORK,
    queue: {
      send: async (message: Message) => void sent.push(message),
      sendAll: async (all: readonly Queued[]) => void sent.push(...all.map(({ message }) => message)),
    },
    progress: {
      begin: async () => {},
      expect: async (_jobId: string, _tag: string, shards: number) => void expected.push(shards),
      restart: async () => {},
      end: async () => {},
      startShard: async () => ({ kind: 'run', starts: 1 }),
      partDone: async () => true,
    },
    sources: {},
    copies: {},
    media: {},
    plda: async () => undefined,
    webhookSecret: async () => 'secret',
    now: () => now,
    pause: async () => {},
    sleep: async () => {},
    log: () => {},
    outputTtlMs: 24 * 3600_000,
  } as unknown as JobPorts;
});

/** The same ports, with some methods of the database replaced. */
const withStore = (changes: Partial<JobStore>): JobPorts => ({ ...ports, store: { ...ports.store, ...changes } });
const handle = (by: JobPorts, message: Message) => handleMessage(by, new Mutex(), message, 1);
const outboxIds = async () =>
  (await ports.store.overdue(Infinity, 100, { jobId: id })).rows.map((row) => row.id).sort();

/** A promise and the function that resolves it. */
function gate(): readonly [reached: Promise<void>, reach: () => void] {
  let reach = () => {};
  const reached = new Promise<void>((done) => {
    reach = done;
  });
  return [reached, reach];
}

async function create(request: object = {}): Promise<void> {
  const body = { url: 'https://example.com/a.wav', model: 'precision-2', ...request };
  await createJob(ports, { accountId: account, kind: 'diarize', request: body } as unknown as CreateJob, id);
}

async function running(): Promise<void> {
  await create();
  await saveIngest(ports, id, STATE, undefined);
  await startShards(ports.store, id, { shardCount: SHARDS, durationSeconds: SECONDS }, now);
}

it('an assembly without parts requests their analysis again', async () => {
  await running();
  await ports.store.nextStep(id, ['analyse'], 'assemble', now);
  await handle(ports, { step: 'assemble', jobId: id });
  expect([await outboxIds(), expected]).toEqual([[`${id}/analyse`], [SHARDS]]);
});

it('a duplicate message of a handled assembly has no effect', async () => {
  await running();
  await handle(ports, { step: 'assemble', jobId: id });
  expect([await outboxIds(), expected]).toEqual([[`${id}/analyse`], []]);
});

it('an ingest that crashed before it informed the object of the job continues with its next delivery', async () => {
  await running();
  expect(await handle(ports, { step: 'ingest', jobId: id })).toEqual({ kind: 'done' });
  expect(expected).toEqual([SHARDS]);
});

it('a duplicate step after the end of its job fetches nothing', async () => {
  await running();
  await ports.objects.deleteMany([ingestKey(id, WORK)]);
  let isFirst = true;
  const racing = withStore({
    async find(jobId) {
      const job = await ports.store.find(jobId);
      if (isFirst) await ports.store.succeed(id, OUTCOME, now);
      isFirst = false;
      return job;
    },
  });
  // There is no port for sources: opening one would fail the step.
  expect(await handle(racing, { step: 'shard', jobId: id, shard: 0 })).toEqual({ kind: 'done' });
});

it.each([
  ['canceled', cancelJob],
  ['deleted', deleteJob],
])('an assembly whose job is %s meanwhile fetches nothing', async (_how, end) => {
  await running();
  for (const shard of [0, 1, 2]) await ports.objects.put(partKey(id, shard, TAG), new Uint8Array(1));
  await ports.store.nextStep(id, ['analyse'], 'assemble', now);
  let ended: Promise<unknown> | undefined;
  const getRange: JobPorts['objects']['getRange'] = async (key, offset, length) => {
    ended ??= end(ports, account, id);
    await ended;
    return ports.objects.getRange(key, offset, length);
  };
  const racing = { ...ports, objects: { ...ports.objects, getRange } };
  // There is no port for sources: opening one would fail the step.
  expect(await handle(racing, { step: 'assemble', jobId: id })).toEqual({ kind: 'done' });
  expect(await outboxIds()).toEqual([]);
  expect(await ports.objects.list(`work/${id}/`, 10)).toEqual([]);
});

it('a sweep keeps the objects of a job that is created meanwhile', async () => {
  for (const leftover of [0, 1, 2]) await ports.objects.put(`work/0-left-${leftover}/part`, new Uint8Array(1));
  const url = 'data:audio/wav;base64,AAAA';
  const [isStored, store] = gate();
  const [mayBeWritten, write] = gate();
  const slow = withStore({
    async create(input) {
      store();
      await mayBeWritten;
      return ports.store.create(input);
    },
  });
  const request = { url, model: 'precision-2' };
  const creating = createJob(slow, { accountId: account, kind: 'diarize', request } as unknown as CreateJob, id);
  await isStored;
  const sweeping = withStore({
    async unfinished(ids) {
      const known = await ports.store.unfinished(ids);
      write();
      await creating;
      return known;
    },
  });
  const deleteMany = async (keys: readonly string[]) => {
    if (keys.some((key) => key.includes('0-left'))) now += 3 * 60_000;
    await ports.objects.deleteMany(keys);
  };
  await expire({ ...sweeping, objects: { ...ports.objects, deleteMany } });
  expect(await ports.objects.list(`work/${id}/`, 10)).toHaveLength(1);
  expect(await ports.objects.list('work/0-left', 10)).toEqual([]);
});

it('a sweep deletes the objects of more than a thousand deleted jobs', async () => {
  const jobs = Array.from({ length: 2500 }, (_, n) => ({
    id: `gone-${String(n).padStart(4, '0')}`,
    deletedAt: now - n,
  }));
  jobs.sort((a, b) => a.deletedAt - b.deletedAt);
  const deletedKeys = new Set<string>();
  const sweeping = withStore({
    deleted: async (limit, after) => {
      const from = after ? jobs.findIndex((job) => job.id === after.id) + 1 : 0;
      return jobs.slice(from, from + limit);
    },
  });
  const deleteMany = async (keys: readonly string[]) => {
    for (const key of keys) deletedKeys.add(key);
  };
  await expire({ ...sweeping, objects: { ...ports.objects, deleteMany } });
  expect(deletedKeys.size).toBeGreaterThanOrEqual(jobs.length);
});

it('a slow duplicate of a webhook attempt does not restart the retries', async () => {
  await create({ webhook: 'https://example.com/hook' });
  await ports.store.cancel(id, { code: 'canceled', message: 'x' }, now);
  const tries: number[] = [];
  const [isAnswered, answer] = gate();
  const [isReached, reach] = gate();
  const receiver = (isSlow: boolean): JobPorts => ({
    ...ports,
    webhook: {
      post: async (_url, _body, headers) => {
        tries.push(Number(headers['x-retry-num'] ?? 0));
        reach();
        if (isSlow) await isAnswered;
        return { ok: true, value: { status: 500 } };
      },
    },
  });
  const first: WebhookMessage = { step: 'webhook', jobId: id, attempt: 0 };
  const job = await ports.store.find(id);
  const slow = deliverWebhook(receiver(true), first, job);
  await isReached;
  await deliverWebhook(receiver(false), first, job);
  const next = () => sent.shift() as WebhookMessage;
  sent = sent.filter(({ step }) => step === 'webhook');
  await deliverWebhook(receiver(false), next(), job);
  answer();
  await slow;
  while (sent.length > 0) await deliverWebhook(receiver(false), next(), job);
  expect(tries).toEqual([0, 0, 1, 2, 3]);
  expect(await outboxIds()).toEqual([]);
});

it('a large delivery that waits for its turn is dropped when its job is deleted', async () => {
  for (const name of ['first', 'second']) {
    id = `job-${account}-${name}`;
    await create({ webhook: `https://example.com/${name}` });
    await ports.store.start(id, now);
    await ports.objects.put(outputKey(id), new Uint8Array(2 * 1024 * 1024));
    await ports.store.succeed(id, { ...OUTCOME, outputKey: outputKey(id) }, now);
  }
  const posted: string[] = [];
  const [isAnswered, answer] = gate();
  const [isReached, reach] = gate();
  const [isWaiting, wait] = gate();
  const receiver: JobPorts = {
    ...ports,
    async sleep() {
      wait();
      await new Promise((wake) => setTimeout(wake, 5));
    },
    webhook: {
      async post(url) {
        posted.push(url);
        reach();
        await isAnswered;
        return { ok: true, value: { status: 204 } };
      },
    },
  };
  const deliver = async (name: string) => {
    const jobId = `job-${account}-${name}`;
    await deliverWebhook(receiver, { step: 'webhook', jobId, attempt: 0 }, await ports.store.find(jobId));
  };
  const first = deliver('first');
  await isReached;
  const second = deliver('second');
  await isWaiting;
  await deleteJob(ports, account, id);
  answer();
  await Promise.all([first, second]);
  expect(posted).toEqual(['https://example.com/first']);
});
