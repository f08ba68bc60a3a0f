import { readFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { blocksOf, fakePorts, recording } from '../../test/helpers/fake-models.ts';
import { serveRanges, startServer, type TestServer } from '../../test/helpers/http-server.ts';
import { indexOf, NOW, useJobs, WORK } from '../../test/helpers/job-world.ts';
import type { Handler } from '../../test/helpers/sources.ts';
import { wav16 } from '../../test/helpers/wav.ts';
import type { AudioIndex } from '../audio/index.ts';
import { analyseShard, encodePart, settingsOf } from '../diarization/index.ts';
import { handleMessage, MAX_DELIVERIES } from './handle.ts';
import { partKey } from './keys.ts';
import type { Message } from './messages.ts';
import { Mutex } from './mutex.ts';
import type { JobPorts, SourceRef } from './ports.ts';
import { type SourceErrorKind, SourceReadError } from './source-error.ts';

/** On a real database and a real bucket, with a real server that the recording is read from. */
const world = useJobs();
const QUARTER_MS = 15 * 60_000;
const BYTES = wav16(new Float32Array(16_000), 16_000);
const FILE = { bytes: BYTES, etag: '"v1"' };
const redirect = (response: ServerResponse, to: string) => response.writeHead(302, { Location: to }).end();

/** What a server does that has given the recording before, by what that is called. */
const FAULTS: Partial<Record<SourceErrorKind, Handler>> = {
  timeout: (_request, response) => void response.writeHead(206, headersTo(BYTES.length - 1)).write(new Uint8Array(9)),
  unreachable: (_request, response) => void response.destroy(),
  server_error: (_request, response) => void response.writeHead(503).end(),
  // There is no whole file either: a copy would be no better.
  changed: (request, response) =>
    request.headers.range ? serveRanges(request, response, { ...FILE, etag: '"v2"' }) : response.writeHead(404).end(),
  incomplete: (request, response) =>
    void (request.headers.range
      ? response.writeHead(206, headersTo(9)).end(new Uint8Array(10))
      : response.writeHead(404).end()),
  http_status: (_request, response) => void response.writeHead(403).end(),
  private_address: (_request, response) => void redirect(response, 'http://10.0.0.1/a.wav'),
  too_many_redirects: (_request, response) => void redirect(response, '/a.wav'),
  invalid_url: (_request, response) => void redirect(response, 'ftp://example.com/a.wav'),
  empty: (_request, response) => void response.writeHead(200, { 'Content-Length': 0 }).end(),
  // It is found, and then every connection to it breaks after a while.
  too_slow: (request, response) => {
    if (request.headers.range === 'bytes=0-1023' && !request.headers['if-range']) serveRanges(request, response, FILE);
    else setTimeout(() => response.destroy(), 20);
  },
};
const headersTo = (end: number) => ({ ETag: FILE.etag, 'Content-Range': `bytes 0-${end}/${BYTES.length}` });

let server: TestServer;
let host: string;
let handler: Handler;
let index: AudioIndex;
beforeAll(async () => {
  server = await startServer((request, response) => handler(request, response));
  host = new URL(server.origin).host;
  index = await indexOf(BYTES);
});
afterAll(() => server?.close());
beforeEach(() => {
  server.requests.length = 0;
  handler = (request, response) => serveRanges(request, response, FILE);
});

const handle = (ports: JobPorts, message: Message, attempt: number) =>
  handleMessage(ports, new Mutex(() => 0), message, attempt);

/** One delivery of a step of a new job, a part or the plan. */
async function delivered(ports: JobPorts, attempt: number, step: 'shard' | 'plan' = 'shard') {
  world.another();
  const jobId = world.id;
  const url = `${server.origin}/a.wav`;
  if (step === 'plan') await world.create({ url });
  else {
    const source: SourceRef = { kind: 'http', url, validator: FILE.etag, sizeBytes: BYTES.length };
    await world.running({ source, index, totalSamples: 16_000, shards: [{ startSample: 0, endSample: 16_000 }] });
  }
  const verdict = await handle(ports, step === 'plan' ? { step, jobId } : { step, jobId, shard: 0 }, attempt);
  const { status, error } = await world.record();
  const row = await world.row(step === 'plan' ? step : 'shard/0');
  return { verdict, status, error, lease: row?.leaseUntil };
}

/** The same where the server fails in that way. */
function failing(kind: SourceErrorKind, attempt: number, step?: 'shard' | 'plan') {
  handler = FAULTS[kind]!;
  const times = { timeout: { stallTimeoutMs: 20 }, too_slow: { readTimeoutMs: 10 } };
  const sources = world.sources(kind in times ? times[kind as keyof typeof times] : {});
  return delivered({ ...world.ports, sources }, attempt, step);
}

/** The pauses between all deliveries, in none of which the message counts as lost. */
async function pausesOf(deliver: (attempt: number) => ReturnType<typeof delivered>, running: string) {
  const pauses: number[] = [];
  for (let attempt = 1; attempt < MAX_DELIVERIES; attempt++) {
    const { verdict, status, lease } = await deliver(attempt);
    expect(status).toBe(running);
    if (verdict.kind !== 'retry') throw new Error('no other try');
    pauses.push(verdict.delaySeconds);
    expect(lease).toBe(NOW + verdict.delaySeconds * 1000 + QUARTER_MS);
  }
  return pauses;
}

describe('a source that fails while a job runs', () => {
  it('is asked again after ever longer pauses, in which the message is not sent a second time', async () => {
    expect(await pausesOf((attempt) => failing('timeout', attempt), 'running')).toEqual([15, 30, 60, 120]);
    expect(server.requests).toHaveLength(4);
  });

  it.each([
    ['timeout', 'stopped sending.'],
    ['unreachable', 'could not be reached.'],
    ['server_error', 'answered 503 (unavailable) instead of the recording.'],
  ] as const)(
    'fails the job as %s at the last try, with its own reason, not as a fault of the service',
    async (kind, what) => {
      const { verdict, status, error } = await failing(kind, MAX_DELIVERIES);
      expect([verdict, status]).toEqual([{ kind: 'done' }, 'failed']);
      expect(error).toEqual({ code: `source_${kind}`, message: `The server ${host} ${what}` });
      expect(await world.steps()).toEqual([]);
    },
  );

  it.each(['changed', 'incomplete', 'http_status', 'private_address', 'too_many_redirects', 'invalid_url'] as const)(
    'fails it at once as %s: no other try can help',
    async (kind) => {
      const { verdict, status, error } = await failing(kind, 1);
      expect([verdict, status]).toEqual([{ kind: 'done' }, 'failed']);
      expect(error).toMatchObject({ code: `source_${kind}` });
    },
  );

  it('fails it at once as empty, whether it is found so or turns out so', async () => {
    expect(await failing('empty', 1, 'plan')).toMatchObject({ status: 'failed', error: { code: 'source_empty' } });
    const { sources } = world.ports;
    const open: typeof sources.open = (ref) => ({
      ...sources.open(ref),
      read: () => Promise.reject(new SourceReadError({ kind: 'empty', message: 'The file is empty.' })),
    });
    const ports = { ...world.ports, sources: { ...sources, open } };
    expect(await delivered(ports, 1)).toMatchObject({ status: 'failed', error: { code: 'source_empty' } });
  });
});

it('a source that is too slow fails its plan at once, and a shard, which shares the server with others, at the last try', async () => {
  const failed = { verdict: { kind: 'done' }, status: 'failed', error: { code: 'source_too_slow' } };
  expect(await failing('too_slow', 1, 'plan')).toMatchObject(failed);
  expect(await failing('too_slow', 1)).toMatchObject({
    verdict: { kind: 'retry', delaySeconds: 15 },
    status: 'running',
  });
  expect(await failing('too_slow', MAX_DELIVERIES)).toMatchObject(failed);
});

it('storage that is away is asked again soon, and then for nearly three minutes: half a minute of it failed jobs', async () => {
  const get = async () => {
    throw new Error('get: We encountered an internal error. Please try again. (10001)');
  };
  const ports = world.withObjects({ get });
  expect(await pausesOf((attempt) => delivered(ports, attempt), 'running')).toEqual([2, 8, 32, 128]);
});

it('the queues deliver as often as the last try expects', () => {
  const config = readFileSync(new URL('../../wrangler.toml', import.meta.url), 'utf8');
  const [, retries] = /queue = "rollcall-jobs"\nmax_batch_size = 1\n(?:.*\n)?max_retries = (\d+)/.exec(config) ?? [];
  expect(Number(retries) + 1).toBe(MAX_DELIVERIES);
});

it('batches that wait for others leave one of the six connections of an invocation free: hanging receivers kept others from being asked', () => {
  const config = readFileSync(new URL('../../wrangler.toml', import.meta.url), 'utf8');
  const sizes = [...config.matchAll(/queue = "rollcall-(?:plans|webhooks)"\nmax_batch_size = (\d+)/g)].map(([, size]) =>
    Number(size),
  );
  expect(sizes).toHaveLength(2);
  expect(Math.max(...sizes)).toBeLessThan(6);
});

it('steps that find no plan of this version have one message plan their job anew: each of hundreds asked the server of the recording, and began all parts', async () => {
  const shardCount = 40;
  await world.create({ url: `${server.origin}/a.wav` });
  await world.ports.store.start(world.id, { shardCount, durationSeconds: 60_000 }, NOW);
  await world.ports.store.requestAssemble(world.id, NOW);
  const jobId = world.id;
  const shards = Array.from({ length: shardCount }, (_, shard) => ({ step: 'shard', jobId, shard }) as const);
  const all: Message[] = [...shards, { step: 'assemble', jobId }];
  const verdicts = await Promise.all(all.map((message) => handle(world.ports, message, 1)));
  expect(world.messages()).toEqual([{ step: 'plan', jobId }]);
  expect(verdicts).toEqual(all.map(() => ({ kind: 'done' })));
  expect(await world.steps()).toEqual(['plan']);
  expect(server.requests).toEqual([]);
});

it('an assembly that comes before all parts are there is asked for again by the last of them, and fails no job', async () => {
  const samples = recording([[[1], 20]]);
  const shards = [0, 160_000].map((startSample) => ({ startSample, endSample: startSample + 160_000 }));
  await world.running({ index: { ...index, durationSeconds: 20 }, totalSamples: samples.length, shards });
  const { store, objects } = world.ports;
  const first = { ...shards[0]!, totalSamples: samples.length };
  const settings = settingsOf('precision-2');
  const part = await analyseShard(blocksOf(samples), first, fakePorts(), settings, async () => undefined);
  await objects.put(partKey(world.id, 0, WORK), encodePart(part));
  await store.settle(`${world.id}/shard/0`);
  await store.requestAssemble(world.id, NOW);
  expect(await handle(world.ports, { step: 'assemble', jobId: world.id }, 1)).toEqual({ kind: 'done' });
  expect([await world.steps(), (await world.record()).status]).toEqual([['shard/1'], 'running']);
  expect(world.sent).toEqual([]);
  await store.requestAssemble(world.id, NOW);
  expect(await world.steps()).toEqual(['assemble', 'shard/1']);
});
