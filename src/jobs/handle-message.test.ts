import { readFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startShards } from '../../test/helpers/database.ts';
import { serveRanges, startServer, type TestServer } from '../../test/helpers/http-server.ts';
import { NOW, useJobs } from '../../test/helpers/job-world.ts';
import type { Handler } from '../../test/helpers/sources.ts';
import { wav16 } from '../../test/helpers/wav.ts';
import { judge, MAX_FAULTS, MAX_JOB_MS, MAX_STARTS, PlatformFault } from './faults.ts';
import { handleMessage } from './handle-message.ts';
import { type Message, queueOf } from './job-messages.ts';
import type { JobPorts } from './job-ports.ts';
import { Mutex } from './mutex.ts';
import { type SourceErrorKind, SourceReadError } from './source-error.ts';

/** Uses a real database and a real bucket, and reads recordings from a real server. */
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

/** Handlers of a server that fails in the middle of a recording, by the kind of the error. */
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

const handle = (ports: JobPorts, message: Message, attempt = 1) =>
  handleMessage(ports, new Mutex(() => 0), message, attempt);

/** Runs the ingest of a new job as start number `starts`. */
async function runIngest(ports: JobPorts, starts: number, attempt = 1) {
  world.another();
  const jobId = world.id;
  await world.create({ url: `${server.origin}/a.wav` });
  await world.storage.db
    .prepare('UPDATE outbox SET starts = ? WHERE job_id = ?')
    .bind(starts - 1, jobId)
    .run();
  const verdict = await handle(ports, { step: 'ingest', jobId }, attempt);
  const { status, error } = await world.record();
  return { verdict, status, error, row: await world.row('ingest') };
}

/** As `runIngest`, with a server that fails after nine bytes. */
function runFailingIngest(kind: SourceErrorKind, starts: number) {
  handler = (request, response) => {
    if (request.headers['if-range'] !== undefined || !request.headers.range) return FAULTS[kind]!(request, response);
    response.writeHead(206, headersFrom(0)).write(BYTES.subarray(0, 9), () => setTimeout(() => response.destroy(), 30));
  };
  const sources = world.sources(kind === 'timeout' ? { stallTimeoutMs: 20 } : {});
  return runIngest({ ...world.ports, sources }, starts);
}

describe('a source that fails while it is read', () => {
  it('is retried after growing pauses, during which the message is leased', async () => {
    const pauses: number[] = [];
    for (let starts = 1; starts < MAX_FAULTS; starts++) {
      const { verdict, status, row } = await runFailingIngest('timeout', starts);
      if (verdict.kind !== 'retry') throw new Error('not retried');
      pauses.push(verdict.delaySeconds);
      const dueAt = NOW + verdict.delaySeconds * 1000;
      expect([status, row]).toMatchObject(['running', { starts, dueAt, leaseUntil: dueAt + QUARTER_MS }]);
    }
    expect(pauses).toEqual([15, 30, 60, 120]);
    expect(server.requests.length).toBeGreaterThanOrEqual(MAX_FAULTS - 1);
  });

  it.each([
    ['timeout', 'stopped sending.'],
    ['unreachable', 'could not be reached.'],
    ['server_error', 'answered 503 (unavailable) instead of the recording.'],
  ] as const)('fails the job with source_%s and its reason at the last try', async (kind, reason) => {
    const { verdict, status, error } = await runFailingIngest(kind, MAX_FAULTS);
    expect([verdict, status]).toEqual([{ kind: 'done' }, 'failed']);
    expect(error).toEqual({ code: `source_${kind}`, message: `The server ${host} ${reason}` });
    expect(await world.steps()).toEqual([]);
  });

  it.each(['incomplete', 'http_status', 'private_address', 'too_many_redirects', 'invalid_url'] as const)(
    'fails the job with source_%s at the first try',
    async (kind) => {
      const { verdict, status, error } = await runFailingIngest(kind, 1);
      expect([verdict, status]).toEqual([{ kind: 'done' }, 'failed']);
      expect(error).toMatchObject({ code: `source_${kind}` });
    },
  );

  it('is read again twice if it changed, then fails the job', async () => {
    for (const attempt of [1, 2]) {
      const { verdict, status } = await runFailingIngest('changed', attempt);
      expect([verdict, status]).toEqual([{ kind: 'retry', delaySeconds: attempt }, 'running']);
    }
    expect(await runFailingIngest('changed', 3)).toMatchObject({ status: 'failed', error: { code: 'source_changed' } });
  });

  it('fails the job with source_empty at the first try', async () => {
    handler = (_request, response) => void response.writeHead(200, { 'Content-Length': 0 }).end();
    expect(await runIngest(world.ports, 1)).toMatchObject({ status: 'failed', error: { code: 'source_empty' } });
    const { sources } = world.ports;
    const fault = () => Promise.reject(new SourceReadError({ kind: 'empty', message: 'The file is empty.' }));
    const source = { sizeBytes: 10, canSeek: true, open: fault, read: fault };
    const open: typeof sources.open = async () => ({ ok: true, value: { source, identity: 'a file' } });
    const ports = { ...world.ports, sources: { ...sources, open } };
    expect(await runIngest(ports, 1)).toMatchObject({ status: 'failed', error: { code: 'source_empty' } });
  });
});

describe('a fault of the platform', () => {
  const fail = () => Promise.reject(new Error('We encountered an internal error. Please try again. (10001)'));

  it.each<[string, () => JobPorts]>([
    ['storage', () => world.withObjects({ getTagged: fail })],
    ['the object of the job', () => ({ ...world.ports, progress: { ...world.ports.progress, begin: fail } })],
    ['the database', () => world.withStore({ finishIngest: fail })],
    ['the upload of a chunk', () => world.withObjects({ put: fail })],
  ])('does not count against its job: %s', async (_, ports) => {
    const { verdict, status, row } = await runIngest(ports(), MAX_STARTS);
    expect(verdict).toEqual({ kind: 'retry', delaySeconds: 5 });
    expect([status, row]).toMatchObject(['running', { starts: MAX_STARTS - 1, dueAt: NOW + 5000 }]);
  });

  it('before the begin of a step does not count as a start', async () => {
    const { verdict, row } = await runIngest(world.withStore({ begin: fail }), 3, 4);
    expect([verdict, row]).toMatchObject([{ kind: 'retry', delaySeconds: 40 }, { starts: 2 }]);
  });

  it('is retried after growing pauses for about as long as a job may run', () => {
    const config = readFileSync(new URL('../../wrangler.jobs.toml', import.meta.url), 'utf8');
    const retries = [...config.matchAll(/^max_retries = (\d+)\ndead_letter_queue/gm)].map(([, count]) => Number(count));
    expect(new Set(retries)).toEqual(new Set([100]));
    const pauses = Array.from({ length: 100 }, (_, n) => {
      const judgement = judge(new PlatformFault(new Error('unavailable')), 1, n + 1);
      return judgement.kind === 'again' ? judgement.delaySeconds : 0;
    });
    expect(pauses.slice(0, 10)).toEqual([5, 10, 20, 40, 80, 160, 320, 640, 900, 900]);
    expect(pauses.reduce((sum, pause) => sum + pause, 0) * 1000).toBeGreaterThan(0.95 * MAX_JOB_MS);
  });

  it('is distinguished from an exception of the step, the fifth of which fails the job', async () => {
    const codecs = () => {
      throw new Error('the decoder crashed');
    };
    const ports = { ...world.ports, codecs };
    expect(await runIngest(ports, 1)).toMatchObject({
      verdict: { delaySeconds: 2 },
      status: 'running',
      row: { starts: 1 },
    });
    expect(await runIngest(ports, 4)).toMatchObject({ verdict: { delaySeconds: 128 }, status: 'running' });
    expect(await runIngest(ports, 5)).toMatchObject({
      verdict: { kind: 'done' },
      status: 'failed',
      error: { code: 'internal' },
    });
  });

  it('that ends the invocation counts as a start; the job fails after ten starts', async () => {
    expect(await runIngest(world.ports, MAX_STARTS)).toMatchObject({ status: 'running', error: undefined });
    expect(await runIngest(world.ports, MAX_STARTS + 1)).toMatchObject({
      status: 'failed',
      error: { code: 'internal' },
    });
  });
});

it('waiting for the mutex does not count as a start of a step', async () => {
  await world.running();
  await world.ports.store.nextStep(world.id, ['analyse'], 'assemble', NOW);
  const mutex = new Mutex();
  let release = () => {};
  const released = new Promise<void>((done) => {
    release = done;
  });
  const sleep = () => new Promise<void>((done) => setTimeout(done, 5));
  const holder = mutex.run({ sleep }, () => released);
  const waiting = handleMessage({ ...world.ports, sleep }, mutex, { step: 'assemble', jobId: world.id }, 1);
  await sleep();
  expect(await world.row('assemble')).toMatchObject({ starts: 0 });
  release();
  await Promise.all([holder, waiting]);
  expect(await world.row('assemble')).toBeUndefined();
});

it('assemblies and shards of short jobs go to the priority queue', () => {
  const jobId = 'job';
  const short = { step: 'shard', jobId, shard: 1, isShort: true } as const;
  expect([short, { step: 'assemble', jobId } as const].map(queueOf)).toEqual(['priority', 'priority']);
  expect(queueOf({ step: 'shard', jobId, shard: 0 })).toBe('jobs');
});

it('a short job is assembled with its last shard, not behind the shards of other short jobs', async () => {
  await world.running();
  await world.putChunks(new Float32Array(16_000).fill(0.01));
  const partDone = async () => {
    await world.ports.store.nextStep(world.id, ['analyse'], 'assemble', NOW);
    return true;
  };
  const ports = { ...world.ports, progress: { ...world.ports.progress, partDone } };
  const shard = { step: 'shard', jobId: world.id, shard: 0 } as const;
  expect(await handle(ports, shard)).toEqual({ kind: 'done' });
  expect(await world.steps()).toEqual(['assemble']);
  expect(await handle(ports, { ...shard, isShort: true })).toEqual({ kind: 'done' });
  expect(await world.record()).toMatchObject({ status: 'succeeded' });
});

it('batches of webhooks are smaller than six, the limit of open connections', () => {
  const config = readFileSync(new URL('../../wrangler.jobs.toml', import.meta.url), 'utf8');
  const [, size] = /queue = "rollcall-webhooks"\nmax_batch_size = (\d+)/.exec(config) ?? [];
  expect(Number(size)).toBeLessThan(6);
});

it('steps without data of this version together request one new ingest', async () => {
  const shardCount = 40;
  await world.create({ url: `${server.origin}/a.wav` });
  await startShards(world.ports.store, world.id, { shardCount, durationSeconds: 12_000 }, NOW);
  const jobId = world.id;
  const shards = Array.from({ length: shardCount }, (_, shard) => ({ step: 'shard', jobId, shard }) as const);
  const all: Message[] = [...shards, { step: 'analyse', jobId }];
  const verdicts = await Promise.all(all.map((message) => handle(world.ports, message)));
  expect(world.messages()).toEqual([{ step: 'ingest', jobId }]);
  expect(verdicts).toEqual(all.map(() => ({ kind: 'done' })));
  expect(await world.steps()).toEqual(['ingest']);
  expect(server.requests).toEqual([]);
});

it('a job whose object missed its alarm continues with the message of a sweep', async () => {
  await world.running({ shardCount: 3 });
  expect(await handle(world.ports, { step: 'analyse', jobId: world.id })).toEqual({ kind: 'done' });
  expect(world.ready).toEqual([3]);
  expect(await world.row('analyse')).toMatchObject({ starts: 0, leaseUntil: NOW + QUARTER_MS });
});
