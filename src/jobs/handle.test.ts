import { readFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startShards } from '../../test/helpers/database.ts';
import { blocksOf, fakePorts, recording } from '../../test/helpers/fake-models.ts';
import { serveRanges, startServer, type TestServer } from '../../test/helpers/http-server.ts';
import { NOW, TAG, useJobs } from '../../test/helpers/job-world.ts';
import type { Handler } from '../../test/helpers/sources.ts';
import { wav16 } from '../../test/helpers/wav.ts';
import { analyseShard, encodePart, settingsOf } from '../diarization/index.ts';
import { handleMessage, MAX_DELIVERIES } from './handle.ts';
import { partKey } from './keys.ts';
import type { Message } from './messages.ts';
import { Mutex } from './mutex.ts';
import type { JobPorts } from './ports.ts';
import { type SourceErrorKind, SourceReadError } from './source-error.ts';

/** On a real database and a real bucket, with a real server that the recording is read from. */
const world = useJobs();
const QUARTER_MS = 15 * 60_000;
const BYTES = wav16(new Float32Array(16_000), 16_000);
const FILE = { bytes: BYTES, etag: '"v1"' };
const redirect = (response: ServerResponse, to: string) => void response.writeHead(302, { Location: to }).end();
const headersFrom = (start: number) => ({
  ETag: FILE.etag,
  'Content-Range': `bytes ${start}-${BYTES.length - 1}/${BYTES.length}`,
  'Content-Length': BYTES.length - start,
});

/** What a server does that has begun to give the recording and is asked for the rest, by what that is called. */
const FAULTS: Partial<Record<SourceErrorKind, Handler>> = {
  timeout: ({ headers }, response) => {
    const [start] = /\d+/.exec(headers.range ?? '') ?? [0];
    response.writeHead(headers.range ? 206 : 200, headersFrom(Number(start))).flushHeaders();
  },
  unreachable: (_request, response) => void response.destroy(),
  server_error: (_request, response) => void response.writeHead(503).end(),
  changed: (request, response) => serveRanges(request, response, { ...FILE, etag: '"v2"' }),
  incomplete: (_request, response) => void response.writeHead(416).end(),
  http_status: (_request, response) => void response.writeHead(403).end(),
  private_address: (_request, response) => redirect(response, 'http://10.0.0.1/a.wav'),
  too_many_redirects: (_request, response) => redirect(response, '/a.wav'),
  invalid_url: (_request, response) => redirect(response, 'ftp://example.com/a.wav'),
};

let server: TestServer;
let host: string;
let handler: Handler;
beforeAll(async () => {
  server = await startServer((request, response) => handler(request, response));
  host = new URL(server.origin).host;
});
afterAll(() => server?.close());
beforeEach(() => {
  server.requests.length = 0;
  handler = (request, response) => serveRanges(request, response, FILE);
});

const handle = (ports: JobPorts, message: Message, attempt: number) =>
  handleMessage(ports, new Mutex(() => 0), message, attempt);

/** One delivery of a step of a new job, a part or the reading of its recording. */
async function delivered(ports: JobPorts, attempt: number, step: 'shard' | 'ingest' = 'ingest') {
  world.another();
  const jobId = world.id;
  if (step === 'ingest') await world.create({ url: `${server.origin}/a.wav` });
  else await world.running();
  const verdict = await handle(ports, step === 'ingest' ? { step, jobId } : { step, jobId, shard: 0 }, attempt);
  const { status, error } = await world.record();
  const row = await world.row(step === 'ingest' ? step : 'shard/0');
  return { verdict, status, error, lease: row?.leaseUntil };
}

/** The same where the server fails in that way when nine bytes have come. */
function failing(kind: SourceErrorKind, attempt: number) {
  handler = (request, response) => {
    if (request.headers['if-range'] !== undefined || !request.headers.range) return FAULTS[kind]!(request, response);
    response.writeHead(206, headersFrom(0)).write(BYTES.subarray(0, 9), () => setTimeout(() => response.destroy(), 30));
  };
  const sources = world.sources(kind === 'timeout' ? { stallTimeoutMs: 20 } : {});
  return delivered({ ...world.ports, sources }, attempt);
}

/** The pauses between all deliveries, in none of which the message counts as lost. */
async function pausesOf(deliver: (attempt: number) => ReturnType<typeof delivered>) {
  const pauses: number[] = [];
  for (let attempt = 1; attempt < MAX_DELIVERIES; attempt++) {
    const { verdict, status, lease } = await deliver(attempt);
    expect(status).toBe('running');
    if (verdict.kind !== 'retry') throw new Error('no other try');
    pauses.push(verdict.delaySeconds);
    expect(lease).toBe(NOW + verdict.delaySeconds * 1000 + QUARTER_MS);
  }
  return pauses;
}

describe('a source that fails while it is read', () => {
  it('is asked again after ever longer pauses, in which the message is not sent a second time', async () => {
    expect(await pausesOf((attempt) => failing('timeout', attempt))).toEqual([15, 30, 60, 120]);
    expect(server.requests.length).toBeGreaterThanOrEqual(MAX_DELIVERIES - 1);
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

  it.each(['incomplete', 'http_status', 'private_address', 'too_many_redirects', 'invalid_url'] as const)(
    'fails it at once as %s: no other try can help',
    async (kind) => {
      const { verdict, status, error } = await failing(kind, 1);
      expect([verdict, status]).toEqual([{ kind: 'done' }, 'failed']);
      expect(error).toMatchObject({ code: `source_${kind}` });
    },
  );

  it('is read again where it changed, twice', async () => {
    for (const attempt of [1, 2]) {
      const { verdict, status } = await failing('changed', attempt);
      expect([verdict, status]).toEqual([{ kind: 'retry', delaySeconds: attempt }, 'running']);
    }
    expect(await failing('changed', 3)).toMatchObject({ status: 'failed', error: { code: 'source_changed' } });
  });

  it('fails it at once as empty, whether it is found so or turns out so', async () => {
    handler = (_request, response) => void response.writeHead(200, { 'Content-Length': 0 }).end();
    expect(await delivered(world.ports, 1)).toMatchObject({ status: 'failed', error: { code: 'source_empty' } });
    const { sources } = world.ports;
    const fault = () => Promise.reject(new SourceReadError({ kind: 'empty', message: 'The file is empty.' }));
    const source = { sizeBytes: 10, canSeek: true, open: fault, read: fault };
    const open: typeof sources.open = async () => ({ ok: true, value: { source, identity: 'a file' } });
    const ports = { ...world.ports, sources: { ...sources, open } };
    expect(await delivered(ports, 1)).toMatchObject({ status: 'failed', error: { code: 'source_empty' } });
  });
});

it('storage that is away is asked again soon, and then for nearly three minutes: half a minute of it failed jobs', async () => {
  const getTagged = async () => {
    throw new Error('get: We encountered an internal error. Please try again. (10001)');
  };
  const ports = world.withObjects({ getTagged });
  for (const step of ['shard', 'ingest'] as const) {
    expect(await pausesOf((attempt) => delivered(ports, attempt, step))).toEqual([2, 8, 32, 128]);
  }
});

it('the queues deliver as often as the last try expects', () => {
  const config = readFileSync(new URL('../../wrangler.jobs.toml', import.meta.url), 'utf8');
  const [, retries] = /queue = "rollcall-jobs"\nmax_batch_size = 1\n(?:.*\n)?max_retries = (\d+)/.exec(config) ?? [];
  expect(Number(retries) + 1).toBe(MAX_DELIVERIES);
});

it('batches of webhooks leave one of six connections free: hanging receivers blocked the others', () => {
  const config = readFileSync(new URL('../../wrangler.jobs.toml', import.meta.url), 'utf8');
  const [, size] = /queue = "rollcall-webhooks"\nmax_batch_size = (\d+)/.exec(config) ?? [];
  expect(Number(size)).toBeLessThan(6);
});

it('steps without data of this version request one new ingest: each of hundreds requested its own', async () => {
  const shardCount = 40;
  await world.create({ url: `${server.origin}/a.wav` });
  await startShards(world.ports.store, world.id, { shardCount, durationSeconds: 12_000 }, NOW);
  await world.ports.store.requestAssemble(world.id, NOW);
  const jobId = world.id;
  const shards = Array.from({ length: shardCount }, (_, shard) => ({ step: 'shard', jobId, shard }) as const);
  const all: Message[] = [...shards, { step: 'assemble', jobId }];
  const verdicts = await Promise.all(all.map((message) => handle(world.ports, message, 1)));
  expect(world.messages()).toEqual([{ step: 'ingest', jobId }]);
  expect(verdicts).toEqual(all.map(() => ({ kind: 'done' })));
  expect(await world.steps()).toEqual(['ingest']);
  expect(server.requests).toEqual([]);
});

it('an assembly that comes before all parts are there is asked for again by the last of them, and fails no job', async () => {
  const samples = recording([[[1], 20]]);
  await world.running({ totalSamples: samples.length, shardCount: 2 });
  const { store, objects } = world.ports;
  const first = { startSample: 0, endSample: 160_000, totalSamples: samples.length };
  const settings = settingsOf('precision-2');
  const part = await analyseShard(blocksOf(samples), first, fakePorts(), settings, async () => undefined);
  await objects.put(partKey(world.id, 0, TAG), encodePart(part));
  await store.settle(`${world.id}/shard/0`);
  await store.requestAssemble(world.id, NOW);
  expect(await handle(world.ports, { step: 'assemble', jobId: world.id }, 1)).toEqual({ kind: 'done' });
  expect([await world.steps(), (await world.record()).status]).toEqual([['shard/1'], 'running']);
  expect(world.sent).toEqual([]);
  await store.requestAssemble(world.id, NOW);
  expect(await world.steps()).toEqual(['assemble', 'shard/1']);
});
