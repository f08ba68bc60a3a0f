import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { serveRanges, startServer, type TestServer } from '../../test/helpers/http-server.ts';
import { indexOf, NOW, useJobs, WORK } from '../../test/helpers/job-world.ts';
import type { Handler } from '../../test/helpers/sources.ts';
import { wav16, wavHeader } from '../../test/helpers/wav.ts';
import { createMediaRows } from '../platform/d1/media-rows.ts';
import { MEDIA_TTL_MS } from '../platform/media.ts';
import { planKey } from './keys.ts';
import { cutShards, planJob, RetryStep, SHARD_SECONDS } from './plan.ts';
import type { JobPlan, JobPorts, JobRecord, JobStore, ObjectStore } from './ports.ts';

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

/** The rest on a real database and a real bucket, with a real server that the recording is read from. */
const world = useJobs();
const FILE = { bytes: wav16(new Float32Array(16_000), 16_000), etag: '"v1"' };
const TWO = [0, 1].map((n) => ({ startSample: n * 4_800_000, endSample: (n + 1) * 4_800_000 }));
let server: TestServer;
let handler: Handler;
let url: string;
/** A plan of two parts. */
let theirs: JobPlan;
beforeAll(async () => {
  server = await startServer((request, response) => handler(request, response));
  url = `${server.origin}/a.wav`;
  const index = { ...(await indexOf(FILE.bytes)), durationSeconds: 600 };
  theirs = { source: { kind: 'object', key: 'media/a/b', sizeBytes: 10 }, index, totalSamples: 9_600_000, shards: TWO };
});
afterAll(() => server?.close());
beforeEach(() => {
  server.requests.length = 0;
  handler = (request, response) => serveRanges(request, response, FILE);
});

const plan = async (ports: JobPorts = world.ports, attempt = 1) => planJob(ports, await world.record(), attempt);
const putPlan = () =>
  world.ports.objects.put(planKey(world.id, WORK), new TextEncoder().encode(JSON.stringify(theirs)));
const storedPlan = async () => {
  const bytes = await world.ports.objects.get(planKey(world.id, WORK));
  return bytes && (JSON.parse(new TextDecoder().decode(bytes)) as JobPlan);
};
const shardMessages = (count: number) =>
  Array.from({ length: count }, (_, shard) => ({ step: 'shard', jobId: world.id, shard }));

/** An upload that was made at that time. */
async function uploaded(name: string, at: number, sizeBytes: number): Promise<string> {
  const [key, rows] = [`media/${world.accountId}/${name}`, createMediaRows(world.storage.db)];
  await rows.claim(world.accountId, key, at, at + MEDIA_TTL_MS);
  await rows.publish(world.accountId, name, key, sizeBytes, at, at + MEDIA_TTL_MS);
  return key;
}

it('refuses a recording whose size was unknown when it was uploaded, once it is found to be above 1 GiB', async () => {
  await uploaded('b', NOW, 1024 ** 3 + 1);
  await world.create({ url: 'media://b' });
  await plan();
  const message = 'The recording is larger than the limit of 1 GiB.';
  expect(await world.record()).toMatchObject({ status: 'failed', error: { code: 'source_too_large', message } });
});

describe('a running job', () => {
  const settled: string[] = [];
  beforeEach(async () => {
    settled.length = 0;
    await world.running(theirs, { url });
    await world.ports.store.settle(`${world.id}/shard/0`);
  });
  const noting = () =>
    world.withStore({
      settle: (id) => {
        settled.push(id);
        return world.ports.store.settle(id);
      },
    });

  it('is planned anew where it has such a message', async () => {
    await world.ports.store.requestPlan(world.id, NOW);
    await plan(noting());
    expect(world.messages()).toEqual(shardMessages(2));
    expect([await world.steps(), settled]).toEqual([['shard/0', 'shard/1'], []]);
  });

  it('is left alone where the message is a leftover copy', async () => {
    await plan(noting());
    expect(world.messages()).toEqual([]);
    expect([await world.steps(), settled]).toEqual([['shard/1'], [`${world.id}/plan`]]);
  });
});

it('goes on from the plan of another run, whatever became of the source: there is one for all parts', async () => {
  await world.create({ url: 'media://gone' });
  await putPlan();
  const begun: object[] = [];
  const begin: JobPorts['progress']['begin'] = async (jobId, shardCount) => {
    begun.push({ jobId, shardCount, status: (await world.record()).status });
  };
  await plan({ ...world.ports, progress: { ...world.ports.progress, begin } });
  expect(begun).toEqual([{ jobId: world.id, shardCount: 2, status: 'created' }]);
  expect(await world.record()).toMatchObject({ status: 'running', shardCount: 2, durationSeconds: 600 });
  expect(world.messages()).toEqual(shardMessages(2));
  expect(await world.steps()).toEqual(['shard/0', 'shard/1']);
});

it('inline recordings are decoded one at a time: four plans with eight MiB each filled an isolate', async () => {
  let inWork = 0;
  let most = 0;
  const { objects, sources } = world.ports;
  const ports: JobPorts = {
    ...world.withObjects({
      get: (key) => {
        if (key.endsWith('/url')) most = Math.max(most, ++inWork);
        return objects.get(key);
      },
    }),
    sources: {
      ...sources,
      resolve: async (...parameters) => {
        await new Promise((done) => setTimeout(done, 5));
        return sources.resolve(...parameters).finally(() => inWork--);
      },
    },
    sleep: (ms) => new Promise((done) => setTimeout(done, ms / 10)),
  };
  const jobs: JobRecord[] = [];
  for (let count = 0; count < 4; count++) {
    world.another();
    jobs.push(await world.create({ url: 'data:,x' }));
  }
  await Promise.all(jobs.map((job) => planJob(ports, job, 1)));
  expect([most, inWork]).toEqual([1, 0]);
  const NOT_AUDIO = expect.stringMatching(/^audio_/);
  for (const { id } of jobs) {
    expect(await world.ports.store.find(id)).toMatchObject({ status: 'failed', error: { code: NOT_AUDIO } });
  }
});

it.each([
  ['changed', 206, { ETag: '"v2"', 'Content-Range': `bytes 0-99/${FILE.bytes.length}` }],
  ['incomplete', 206, { ETag: FILE.etag, 'Content-Range': `bytes 0-9/${FILE.bytes.length}` }],
  ['no_ranges', 200, { ETag: FILE.etag, 'Content-Length': FILE.bytes.length }],
] as const)(
  'a file whose reading by parts fails as %s is copied whole: it may be of two backends, or ranges may not work',
  async (fault, status, headers) => {
    let faults = 0;
    handler = (request, response) => {
      if (request.headers['if-range'] === undefined) return serveRanges(request, response, FILE);
      faults++;
      response.writeHead(status, headers).end(FILE.bytes.subarray(0, fault === 'no_ranges' ? undefined : 10));
    };
    await world.create({ url });
    await plan();
    // A change is believed at once, the others are not.
    expect(faults).toBe(fault === 'changed' ? 1 : 4);
    const { source, shards } = (await storedPlan())!;
    const key = expect.stringMatching(new RegExp(`^work/${world.id}/source`));
    expect(source).toMatchObject({ kind: 'object', key, sizeBytes: FILE.bytes.length });
    expect(shards).toHaveLength(1);
    const copy = await world.ports.sources.open(source).read(0, FILE.bytes.length);
    expect(Buffer.compare(copy, FILE.bytes)).toBe(0);
  },
);

/** A server whose file is silence of that length; nobody may ask for it whole. */
function serveSilence(seconds: number): Handler {
  const dataBytes = Math.round(8000 * seconds);
  const header = wavHeader({ sampleRateHz: 8000, channels: 1, tag: 1, bits: 8 }, dataBytes);
  const sizeBytes = header.length + dataBytes;
  return (request, response) => {
    const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range!)!;
    const [start, end] = [Number(from), Math.min(Number(to), sizeBytes - 1)];
    const bytes = new Uint8Array(end - start + 1).fill(128);
    if (start < header.length) bytes.set(header.subarray(start, start + bytes.length));
    response.writeHead(206, { ETag: FILE.etag, 'Content-Range': `bytes ${start}-${end}/${sizeBytes}` }).end(bytes);
  };
}

it.each([
  ['24 hours of a recording', 'diarize', 24 * 3600, 289],
  ['30 seconds of a voice', 'voiceprint', 30, 1],
])('takes %s, with the padding of encoders, and no more', async (_what, kind, seconds, shards) => {
  const planned = async (length: number) => {
    world.another();
    handler = serveSilence(length);
    await world.create({ url }, kind);
    await plan();
    return { error: (await world.record()).error?.code, sent: world.sent.length, steps: (await world.steps()).length };
  };
  expect(await planned(seconds + 0.2)).toEqual({ error: undefined, sent: shards, steps: shards });
  expect((await storedPlan())?.shards).toHaveLength(shards);
  expect(await planned(seconds + 0.3)).toEqual({ error: 'audio_too_long', sent: 0, steps: 0 });
});

it('looks for an upload as of when its job was accepted: one that waited past the end of its 48 hours still reads it', async () => {
  const planned = async (acceptedAt: number) => {
    world.another();
    world.now = acceptedAt;
    await world.create({ url: 'media://b' });
    world.now = NOW + MEDIA_TTL_MS + 3600_000;
    await plan();
    return world.record();
  };
  await world.ports.objects.put(await uploaded('b', NOW, FILE.bytes.length), FILE.bytes);
  expect(await planned(NOW + MEDIA_TTL_MS - 1)).toMatchObject({ status: 'running', shardCount: 1 });
  expect(await planned(NOW + MEDIA_TTL_MS)).toMatchObject({ status: 'failed', error: { code: 'source_not_found' } });
});

it('asks a server that is away three times, then fails the job with the reason', async () => {
  handler = (_request, response) => void response.destroy();
  await world.create({ url });
  const message = `The server ${new URL(url).host} could not be reached.`;
  for (const attempt of [1, 2]) {
    await expect(plan(world.ports, attempt)).rejects.toEqual(new RetryStep(message, attempt));
    expect((await world.record()).status).toBe('created');
  }
  await plan(world.ports, 3);
  expect(await world.record()).toMatchObject({ status: 'failed', error: { code: 'source_unreachable', message } });
});

describe('beside another run', () => {
  beforeEach(async () => {
    // Without ranges: it is copied.
    handler = (_request, response) => void response.end(FILE.bytes);
    await world.create({ url });
  });
  const CANCELED = { code: 'canceled', message: 'x' };

  it.each<[string, number, (store: JobStore) => Promise<boolean>]>([
    [
      'leaves the work of a job alone that was started',
      2,
      (store) => store.start(world.id, { shardCount: 1, durationSeconds: 1 }, NOW),
    ],
    ['removes that of one that was canceled', 0, (store) => store.cancel(world.id, CANCELED, NOW)],
    ['removes that of one that was deleted', 0, (store) => store.remove(world.accountId, world.id, NOW)],
  ])('%s meanwhile', async (_what, objects, meanwhile) => {
    const { store } = world.ports;
    let before = 0;
    const start: JobStore['start'] = async (...parameters) => {
      before = (await world.workKeys()).length;
      expect(await meanwhile(store)).toBe(true);
      return store.start(...parameters);
    };
    await plan(world.withStore({ start }));
    expect([before, (await world.workKeys()).length]).toEqual([2, objects]);
    expect(world.sent).toEqual([]);
  });

  it('goes on with the plan that was stored first', async () => {
    const putNew: ObjectStore['putNew'] = async (...parameters) => {
      await putPlan();
      return world.ports.objects.putNew(...parameters);
    };
    await plan(world.withObjects({ putNew }));
    expect(await storedPlan()).toEqual(theirs);
    expect(await world.record()).toMatchObject({ status: 'running', shardCount: 2, durationSeconds: 600 });
    expect(world.messages()).toEqual(shardMessages(2));
  });
});
