import { expect, it } from 'vitest';
import { wav16, wavHeader } from '../../test/helpers/wav.ts';
import { SourceReadError } from '../platform/sources/errors.ts';
import { cutShards, planJob, RetryStep, SHARD_SECONDS } from './plan.ts';
import { PlanMemory } from './plan-memory.ts';
import type { JobPorts, JobRecord, Queued } from './ports.ts';

const RATE = 16000;

it('covers the recording without hole or overlap, on the grid of the stretches', () => {
  for (const seconds of [0.001, 9.99, 300, 300.01, 301, 3600, 86400]) {
    const total = Math.ceil(seconds * RATE);
    const shards = cutShards(total);
    expect(shards[0].startSample).toBe(0);
    expect(shards.at(-1)!.endSample).toBe(total);
    for (const [index, shard] of shards.entries()) {
      expect(shard.endSample).toBeGreaterThan(shard.startSample);
      expect(shard.startSample % (10 * RATE)).toBe(0);
      if (index > 0) expect(shard.startSample).toBe(shards[index - 1].endSample);
    }
    expect(shards).toHaveLength(Math.ceil(total / (SHARD_SECONDS * RATE)));
  }
});

it('has no shard for a recording without samples', () => {
  expect(cutShards(0)).toEqual([]);
});

it('refuses a recording whose size was unknown when it was uploaded, once it is found to be above 1 GiB', async () => {
  const failed: object[] = [];
  const ports = {
    media: { resolve: async () => ({ key: 'media/a/b', sizeBytes: 1024 ** 3 + 1 }) },
    objects: { get: async () => undefined },
    store: {
      fail: async (_jobId: string, error: object) => {
        failed.push(error);
        return false;
      },
    },
    now: () => 0,
  } as unknown as JobPorts;
  const job = { id: 'job', accountId: 'a', status: 'created', request: { url: 'media://b' } } as unknown as JobRecord;
  await planJob(ports, job, 1);
  expect(failed).toEqual([{ code: 'source_too_large', message: 'The recording is larger than the limit of 1 GiB.' }]);
});

it('plans a running job anew where it has such a message, and leaves it alone where the message is a leftover copy', async () => {
  for (const isAsked of [true, false]) {
    const done: string[] = [];
    const ports = {
      objects: {
        get: async () => new TextEncoder().encode(JSON.stringify({ source: {}, index: {}, shards: [{}] })),
      },
      progress: { begin: async () => {} },
      store: {
        outboxRow: async () => (isAsked ? {} : undefined),
        settle: async (id: string) => void done.push(`settle ${id}`),
        start: async () => void done.push('start'),
        restart: async () => done.push('restart') > 0,
        renewLeases: async () => {},
      },
      queue: { sendAll: async () => void done.push('send') },
      log: () => {},
      now: () => 0,
      work: 'v',
    } as unknown as JobPorts;
    const job = { id: 'job', status: 'running', request: { url: 'media://b' } } as unknown as JobRecord;
    await planJob(ports, job, 1);
    expect(done).toEqual(isAsked ? ['restart', 'send'] : ['settle job/plan']);
  }
});

it('goes on from the plan of another run, whatever became of the source: there is one for all parts', async () => {
  const plan = {
    source: { kind: 'object', key: 'media/a/b', sizeBytes: 10 },
    index: { durationSeconds: 600, format: 'wav' },
    shards: [{}, {}],
  };
  const sent: object[] = [];
  const started: object[] = [];
  const ports = {
    media: {
      resolve: async () => {
        throw new Error('the source was looked at again');
      },
    },
    objects: { get: async () => new TextEncoder().encode(JSON.stringify(plan)) },
    progress: { begin: async (_jobId: string, shardCount: number) => void started.push({ shardCount }) },
    store: {
      start: async (_jobId: string, outcome: object) => {
        started.push(outcome);
        return true;
      },
      renewLeases: async () => {},
    },
    queue: { sendAll: async (queued: Queued[]) => void sent.push(...queued.map(({ message }) => message)) },
    log: () => {},
    now: () => 0,
    work: 'v',
  } as unknown as JobPorts;
  const job = { id: 'job', accountId: 'a', status: 'created', request: { url: 'media://b' } } as unknown as JobRecord;
  await planJob(ports, job, 1);
  expect(started).toEqual([{ shardCount: 2 }, { shardCount: 2, durationSeconds: 600 }]);
  expect(sent).toEqual([0, 1].map((shard) => ({ step: 'shard', jobId: 'job', shard })));
});

it('inline recordings are decoded one at a time: four plans with eight MiB each filled an isolate', async () => {
  let inWork = 0;
  let most = 0;
  const ports = {
    objects: {
      get: async (key: string) => {
        if (!key.endsWith('/url')) return undefined;
        most = Math.max(most, ++inWork);
        return new TextEncoder().encode('data:,x');
      },
    },
    sources: {
      resolve: async () => {
        await new Promise((done) => setTimeout(done, 5));
        inWork--;
        return { ok: false, error: { kind: 'empty', message: 'The file is empty.' } };
      },
    },
    store: { fail: async () => false },
    pause: async () => {},
    sleep: (ms: number) => new Promise((done) => setTimeout(done, ms / 10)),
    now: () => 0,
    work: 'v',
  } as unknown as JobPorts;
  const plan = async (id: number) => {
    const job = { id: `job-${id}`, accountId: 'a', status: 'created', request: { url: 'data:' } };
    await planJob(ports, job as unknown as JobRecord, 1);
  };
  await Promise.all([1, 2, 3, 4].map(plan));
  expect(most).toBe(1);
  expect(inWork).toBe(0);
});

it.each(['changed', 'incomplete', 'no_ranges'] as const)(
  'a file whose reading by parts fails as %s is copied whole: it may be of two backends, or ranges may not work',
  async (fault) => {
    const bytes = wav16(new Float32Array(16_000), 16_000);
    const plans: { source: object; shards: object[] }[] = [];
    const ports = {
      objects: {
        get: async () => undefined,
        putNew: async (_key: string, plan: Uint8Array) => {
          plans.push(JSON.parse(new TextDecoder().decode(plan)));
          return true;
        },
      },
      sources: {
        resolve: async (_url: string, key: string, { isCopied }: { isCopied?: boolean }) => ({
          ok: true,
          value: { kind: isCopied ? 'object' : 'http', key, sizeBytes: bytes.length },
        }),
        open: ({ kind }: { kind: string }) => ({
          sizeBytes: bytes.length,
          read: async (offset: number, length: number) => {
            if (kind === 'http') throw new SourceReadError({ kind: fault, message: 'The recording changed.' });
            return bytes.subarray(offset, offset + length);
          },
        }),
      },
      codecs: () => ({}),
      progress: { begin: async () => {} },
      store: { start: async () => true, renewLeases: async () => {} },
      queue: { sendAll: async () => {} },
      log: () => {},
      now: () => 0,
      work: 'v',
    } as unknown as JobPorts;
    const request = { url: 'https://example.com/a.wav' };
    await planJob(ports, { id: 'job', accountId: 'a', status: 'created', request } as unknown as JobRecord, 1);
    expect(plans).toMatchObject([{ source: { kind: 'object', key: 'work/job/source' }, shards: [{}] }]);
  },
);

/** Plans a job whose recording is silence of that length, in a world that may differ from the usual one. */
async function planned(seconds: number, { job = {}, attempt = 1, ...other }: Record<string, unknown> = {}) {
  const header = wavHeader({ sampleRateHz: 8000, channels: 1, tag: 1, bits: 8 }, Math.round(8000 * seconds));
  const sizeBytes = header.length + Math.round(8000 * seconds);
  const seen = { failed: [] as string[], shards: 0, removed: [] as string[], asOf: [] as number[] };
  const ports = {
    media: {
      resolve: async (_accountId: string, _name: string, asOf: number) => {
        seen.asOf.push(asOf);
        return { key: 'media/a/b', sizeBytes };
      },
    },
    sources: {
      resolve: async () => ({ ok: true, value: { kind: 'object', key: 'k', sizeBytes } }),
      open: () => ({
        sizeBytes,
        read: async (offset: number, length: number) => {
          const bytes = new Uint8Array(Math.min(length, sizeBytes - offset)).fill(128);
          if (offset < header.length) bytes.set(header.subarray(offset, offset + bytes.length));
          return bytes;
        },
      }),
      ...(other.sources as object),
    },
    objects: {
      get: async () => undefined,
      putNew: async () => true,
      list: async () => (seen.removed.length === 0 ? ['work/job/source'] : []),
      deleteMany: async (keys: readonly string[]) => void seen.removed.push(...keys),
      ...(other.objects as object),
    },
    store: {
      start: async () => true,
      renewLeases: async () => {},
      fail: async (_jobId: string, { code }: { code: string }) => {
        seen.failed.push(code);
        return false;
      },
      ...(other.store as object),
    },
    codecs: () => ({}),
    progress: { begin: async () => {} },
    queue: {
      sendAll: async (queued: readonly Queued[]) => {
        seen.shards += queued.length;
      },
    },
    log: () => {},
    now: () => 1e12,
    work: 'v',
    plans: new PlanMemory(),
  } as unknown as JobPorts;
  const request = { url: 'https://example.com/a.wav' };
  const made = {
    id: 'job',
    accountId: 'a',
    kind: 'diarize',
    status: 'created',
    request,
    createdAt: 5,
    ...(job as object),
  };
  await planJob(ports, made as unknown as JobRecord, Number(attempt));
  return seen;
}

it('takes 24 hours of a recording and 30 seconds of a voice, with the padding of encoders, and no more', async () => {
  const day = 24 * 3600;
  expect(await planned(day + 0.2)).toMatchObject({ failed: [], shards: 289 });
  expect(await planned(day + 0.3)).toMatchObject({ failed: ['audio_too_long'], shards: 0 });
  const voice = { job: { kind: 'voiceprint' } };
  expect(await planned(30.2, voice)).toMatchObject({ failed: [], shards: 1 });
  expect(await planned(30.3, voice)).toMatchObject({ failed: ['audio_too_long'], shards: 0 });
});

it('looks for an upload as of when its job was accepted: one that waited past the end of its 48 hours still reads it', async () => {
  expect(await planned(1, { job: { request: { url: 'media://b' }, createdAt: 77 } })).toMatchObject({
    asOf: [77],
    shards: 1,
  });
});

it('asks a server that is away three times, then fails the job with the reason', async () => {
  const error = { kind: 'unreachable', message: 'The server example.org could not be reached.' };
  const away = { sources: { resolve: async () => ({ ok: false, error }) } };
  for (const attempt of [1, 2]) {
    await expect(planned(1, { ...away, attempt })).rejects.toEqual(new RetryStep(error.message, attempt));
  }
  expect((await planned(1, { ...away, attempt: 3 })).failed).toEqual(['source_unreachable']);
});

it('beside another run: goes on with the plan that was stored first, and removes the work of a job that has ended alone', async () => {
  const raced = async (status: string) =>
    (await planned(1, { store: { start: async () => false, find: async () => ({ status }) } })).removed;
  expect(await raced('running')).toEqual([]);
  expect(await raced('canceled')).toEqual(['work/job/source']);
  const theirs = { source: {}, index: { durationSeconds: 600 }, shards: [{}, {}] };
  let looks = 0;
  const get = async () => (looks++ === 0 ? undefined : new TextEncoder().encode(JSON.stringify(theirs)));
  expect((await planned(1, { objects: { get, putNew: async () => false } })).shards).toBe(2);
});
