import type { ServerResponse } from 'node:http';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { memorySource, testSignal } from '../../test/helpers/audio.ts';
import { RUNS_ALL_CASES } from '../../test/helpers/cases.ts';
import { serveRanges, startServer, type TestServer } from '../../test/helpers/http-server.ts';
import { NOW, recordingOf, TAG, useJobs, WORK } from '../../test/helpers/job-world.ts';
import type { Handler } from '../../test/helpers/sources.ts';
import { wav16, wavFile, wavHeader } from '../../test/helpers/wav.ts';
import { type ByteSource, SeekNeeded } from '../audio/audio-ports.ts';
import type { Checkpoint } from '../audio/recording.ts';
import { CHUNK_SAMPLES } from '../ingest/chunks.ts';
import { canPay } from '../platform/d1/account-limits.ts';
import { createMediaRows } from '../platform/d1/media-rows.ts';
import { MEDIA_TTL_MS } from '../platform/media-store.ts';
import { RetryStep } from './faults.ts';
import { handleMessage } from './handle-message.ts';
import { ingestJob } from './ingest.ts';
import type { JobPorts, ObjectStore, OpenSource } from './job-ports.ts';
import type { JobRecord } from './job-record.ts';
import type { JobStore } from './job-store.ts';
import { Mutex } from './mutex.ts';
import { chunkKey, copyKey, ingestKey } from './work-keys.ts';

/**
 * Uses a real database and reads recordings from a real server. Objects are in memory, except in tests of the bucket,
 * because they are many and large.
 */
const world = useJobs();
const MIB = 1024 ** 2;
/** One second of audio. */
const SHORT = { bytes: wav16(new Float32Array(16_000), 16_000), etag: '"short"' };
/** Duration of a recording of two shards: the first is ready while the last 110 s are still read. */
const LONG_SECONDS = 560;
const LONG = { bytes: wav16(testSignal(16_000, 1, LONG_SECONDS), 16_000), etag: '"long"' };
const LONG_CHUNKS = 4;
/** Another recording of the same length. */
const OTHER_FILE = LONG.bytes.map((byte, at) => (at < 44 ? byte : byte ^ 0x55));
let server: TestServer;
let handler: Handler;
let url: string;
let bucketObjects: ObjectStore;
beforeAll(async () => {
  server = await startServer((request, response) => handler(request, response));
  url = `${server.origin}/a.wav`;
});
afterAll(() => server?.close());
beforeEach(() => {
  server.requests.length = 0;
  handler = (request, response) => serveRanges(request, response, SHORT);
  bucketObjects = world.ports.objects;
  world.ports = { ...world.ports, objects: memoryObjects() };
});
afterEach(() => {
  vi.restoreAllMocks();
});

const ingest = async (ports: JobPorts = world.ports, attempt = 1) => ingestJob(ports, await world.record(), attempt);
/** Stored samples of the recording, as bytes. */
async function storedAudio(tag = TAG): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  for (let chunk = 0; ; chunk++) {
    const bytes = await world.ports.objects.get(chunkKey(world.id, chunk, tag));
    if (!bytes) return Buffer.concat(chunks);
    chunks.push(bytes);
  }
}
/** Whether the stored samples are those of `file`, after its header of 44 bytes. */
const audioIs = async (file: Uint8Array, tag?: string) =>
  Buffer.compare(await storedAudio(tag), file.subarray(44)) === 0;
/** The same ports, which open this source for every URL. */
const withSource = (open: () => OpenSource | 'copy', ports = world.ports): JobPorts => ({
  ...ports,
  sources: { ...ports.sources, open: async () => ({ ok: true, value: open() }) },
});
const sourceOf = (bytes: Uint8Array, identity = 'a file'): OpenSource => ({ source: memorySource(bytes), identity });

/** Object store in memory with the semantics of R2. */
function memoryObjects(kept = new Map<string, Uint8Array>()): ObjectStore {
  const etags = new Map<string, string>();
  let made = 0;
  const put = (key: string, bytes: Uint8Array): string => {
    kept.set(key, bytes.slice());
    etags.set(key, String(made++));
    return etags.get(key)!;
  };
  const objects: Partial<ObjectStore> = {
    put: async (key, bytes) => void put(key, bytes),
    replace: async (key, bytes, etag) => (etags.get(key) === etag ? put(key, bytes) : undefined),
    get: async (key) => kept.get(key),
    getTagged: async (key) => {
      const bytes = kept.get(key);
      return bytes && { bytes, etag: etags.get(key)! };
    },
    list: async (prefix) => [...kept.keys()].filter((key) => key.startsWith(prefix)).sort(),
    deleteMany: async (keys) => {
      for (const key of keys) {
        kept.delete(key);
        etags.delete(key);
      }
    },
  };
  return objects as ObjectStore;
}

/** A promise and the function that resolves it. */
function gate(): readonly [reached: Promise<void>, reach: () => void] {
  let reach = () => {};
  const reached = new Promise<void>((done) => {
    reach = done;
  });
  return [reached, reach];
}

describe('reading a recording', () => {
  it('stores chunks and queues the analysis', async () => {
    world.ports = { ...world.ports, objects: bucketObjects };
    handler = (request, response) => serveRanges(request, response, LONG);
    await world.create({ url });
    await ingest();
    const recording = recordingOf({ totalSamples: LONG_SECONDS * 16_000 });
    expect(await world.state()).toMatchObject({ generation: 0, chunks: LONG_CHUNKS, recording });
    expect(await audioIs(LONG.bytes)).toBe(true);
    expect(await world.record()).toMatchObject({ status: 'running', shardCount: 2, durationSeconds: LONG_SECONDS });
    expect([world.ready, await world.steps()]).toEqual([[2], ['analyse']]);
    expect(server.requests).toHaveLength(1);
  });

  it('hands out the first shards of a long recording before the rest is read', async () => {
    const seconds = 1300;
    const source = silence(seconds);
    const { calls, progress } = recordedProgress();
    await world.create({ url });
    await ingest(withSource(() => ({ source, identity: 'a file' }), { ...world.ports, progress }));
    expect(calls).toEqual([
      ['begin', TAG, 'ingest 0'],
      // Three shards and ten seconds fill seven chunks.
      ['ready', TAG, 3, 'ingest 7'],
      ['begin', TAG, 'ingest 9'],
      ['expect', TAG, 5, 'analyse 9'],
    ]);
  });

  it('analyses a short recording only after it is read completely', async () => {
    const { calls, progress } = recordedProgress();
    await world.create({ url });
    await ingest(withSource(() => sourceOf(LONG.bytes), { ...world.ports, progress }));
    expect(calls).toEqual([
      ['begin', TAG, 'ingest 0'],
      ['begin', TAG, `ingest ${LONG_CHUNKS}`],
      ['expect', TAG, 2, `analyse ${LONG_CHUNKS}`],
    ]);
  });

  /** Records the calls to the job's object, each with the current step of the job and the number of stored chunks. */
  function recordedProgress() {
    const calls: unknown[] = [];
    const record =
      (name: string) =>
      async (_jobId: string, ...parameters: unknown[]) => {
        const chunks = (await world.state())?.chunks ?? 0;
        calls.push([name, ...parameters, `${await world.steps()} ${chunks}`]);
      };
    const progress = {
      ...world.ports.progress,
      begin: record('begin'),
      ready: record('ready'),
      expect: record('expect'),
    };
    return { calls, progress };
  }

  describe('for an account with little credit', () => {
    const credit = (seconds: number) =>
      world.storage.db
        .prepare('UPDATE accounts SET subscribed = 0, credit_seconds = ? WHERE id = ?')
        .bind(seconds, world.accountId)
        .run();
    const read = (seconds: number) => ingest(withSource(() => ({ source: silence(seconds), identity: 'a file' })));

    it('fails the job and releases the credit if it does not cover the recording', async () => {
      await credit(1299);
      await world.create({ url });
      await read(1300);
      const { status, error } = await world.record();
      expect([status, error?.code, world.ready, await world.steps()]).toEqual(['failed', 'payment_required', [], []]);
      expect(error?.message).toMatch(
        /1300 s long, and the account has neither an active subscription nor enough credit/,
      );
      expect(await canPay(world.storage.db, world.accountId, NOW)).toBe(true);
    });

    it('starts the analysis if the credit covers exactly the recording', async () => {
      await credit(1300);
      await world.create({ url });
      await read(1300);
      expect([(await world.record()).status, world.ready]).toEqual(['running', [5]]);
      expect(await canPay(world.storage.db, world.accountId, NOW)).toBe(false);
    });
  });
});

describe('a running job', () => {
  beforeEach(async () => {
    handler = (request, response) => serveRanges(request, response, SHORT);
    await world.running({ shardCount: 2 }, { url });
  });

  it('continues with the stored chunks on another ingest message, without the source', async () => {
    await world.ports.store.nextStep(world.id, ['analyse'], 'ingest', NOW);
    await ingest();
    expect([world.ready, await world.steps()]).toEqual([[2], ['analyse']]);
    expect(server.requests).toEqual([]);
  });

  it('reads the recording again if the stored state is of another version', async () => {
    await world.ports.store.nextStep(world.id, ['analyse'], 'ingest', NOW);
    await ingest({ ...world.ports, work: 'w' });
    expect([world.ready, await world.steps()]).toEqual([[1], ['analyse']]);
    expect(await storedAudio('w.0')).toHaveLength(2 * 16_000);
  });
});

/**
 * Ports of a process that crashes at call number `crashAt`, counted from 1: before the call has an effect, or after
 * the effect and before it returns.
 */
function crashing(ports: JobPorts, crashAt: number, when: 'before' | 'after') {
  const log = { calls: 0, names: [] as string[] };
  const crash = () => Promise.reject(new Error('the process has crashed'));
  const counted = <T extends object>(name: string, port: T): T =>
    new Proxy(port, {
      get: (target, method) => {
        const own = Reflect.get(target, method) as (...parameters: unknown[]) => unknown;
        return async (...parameters: unknown[]) => {
          const call = ++log.calls;
          log.names.push(`${name}.${String(method)}`);
          if (call > crashAt || (call === crashAt && when === 'before')) return crash();
          const answer = await own.apply(target, parameters);
          return call === crashAt ? crash() : answer;
        };
      },
    });
  const { store, queue, objects, sources, progress, copies } = ports;
  const wrapped: JobPorts = {
    ...ports,
    store: counted('store', store),
    queue: counted('queue', queue),
    objects: counted('objects', objects),
    sources: counted('sources', sources),
    progress: counted('progress', progress),
    copies: counted('copies', copies),
  };
  return { ports: wrapped, log };
}

describe('a process that crashes', () => {
  const SECONDS = 460;
  const FILE = wav16(testSignal(16_000, 1, SECONDS), 16_000);
  const state = (kept: Map<string, Uint8Array>) => {
    const { checkpoint, ...rest } = JSON.parse(Buffer.from(kept.get(ingestKey(world.id, WORK))!).toString());
    return rest;
  };

  /** Runs the step in a process that crashes at a call, then twice in one that does not. */
  async function runWithCrash(crashAt: number, when: 'before' | 'after') {
    world.another();
    await world.create({ url });
    const kept = new Map<string, Uint8Array>();
    const expected: unknown[] = [];
    const progress: JobPorts['progress'] = {
      ...world.ports.progress,
      expect: async (_jobId, tag, count) => void expected.push([tag, count]),
    };
    const base = { ...world.ports, objects: memoryObjects(kept), progress };
    const ports = withSource(() => sourceOf(FILE), base);
    const first = crashing(ports, crashAt, when);
    const message = { step: 'ingest', jobId: world.id } as const;
    await handleMessage(first.ports, new Mutex(() => 0), message, 1).catch(() => undefined);
    for (let attempt = 2; attempt <= 3; attempt++) {
      world.now += 60_000;
      await handleMessage(ports, new Mutex(() => 0), message, attempt);
    }
    const chunks = [...kept].filter(([key]) => key.includes('/pcm-'));
    const { length } = world.id;
    return {
      calls: first.log.calls,
      names: first.log.names,
      state: state(kept),
      chunks: Object.fromEntries(chunks.map(([key, bytes]) => [key.slice(5 + length), bytes])),
      expected: expected.at(-1),
      steps: await world.steps(),
      record: await world.record(),
    };
  }

  it.each(['before', 'after'] as const)(
    '%s any call leaves a state that the next run completes',
    async (when) => {
      const undisturbed = await runWithCrash(Number.POSITIVE_INFINITY, when);
      expect(undisturbed.steps).toEqual(['analyse']);
      expect(undisturbed.expected).toEqual([TAG, 2]);
      expect(Object.keys(undisturbed.chunks)).toHaveLength(4);
      for (const name of ['objects.replace', 'store.finishIngest', 'objects.put', 'progress.expect'])
        expect(undisturbed.names).toContain(name);
      for (let crashAt = 1; crashAt <= undisturbed.calls; crashAt += RUNS_ALL_CASES ? 1 : 5) {
        const where = `${when} call ${crashAt}, ${undisturbed.names[crashAt - 1]}`;
        const repaired = await runWithCrash(crashAt, when);
        expect([where, repaired.state, repaired.steps, repaired.expected]).toEqual([
          where,
          undisturbed.state,
          undisturbed.steps,
          undisturbed.expected,
        ]);
        expect(repaired.record).toMatchObject({ status: 'running', shardCount: 2, durationSeconds: SECONDS });
        expect(Object.keys(repaired.chunks)).toEqual(Object.keys(undisturbed.chunks));
        for (const [key, bytes] of Object.entries(repaired.chunks))
          expect([where, key, Buffer.compare(bytes, undisturbed.chunks[key]!)]).toEqual([where, key, 0]);
      }
    },
    240_000,
  );
});

describe('a recording that changes', () => {
  const OTHER_SIGNAL = testSignal(16_000, 1, 20).map((sample) => -sample);
  const OTHER = { bytes: wav16(OTHER_SIGNAL, 16_000), etag: '"other"' };

  it('between two runs is read again from its start', async () => {
    handler = (request, response) => serveRanges(request, response, LONG);
    await world.create({ url });
    const begun: string[] = [];
    const expected: unknown[] = [];
    const progress: JobPorts['progress'] = {
      ...world.ports.progress,
      begin: async (_jobId, tag) => void begun.push(tag),
      expect: async (_jobId, tag, count) => void expected.push([tag, count]),
    };
    const ports = { ...world.ports, progress };
    const put: ObjectStore['put'] = async (key, bytes) => {
      if (key.endsWith('3')) throw new Error('storage is unavailable');
      await ports.objects.put(key, bytes);
    };
    await expect(ingest({ ...ports, objects: { ...ports.objects, put } })).rejects.toThrow('storage is unavailable');
    expect([world.ready, await world.steps()]).toEqual([[], ['ingest']]);
    world.sent = [];
    handler = (request, response) => serveRanges(request, response, OTHER);
    await ingest(ports, 2);
    expect(await world.state()).toMatchObject({
      generation: 1,
      chunks: 1,
      recording: recordingOf({ totalSamples: OTHER_SIGNAL.length }),
    });
    expect(await audioIs(OTHER.bytes, `${WORK}.1`)).toBe(true);
    expect(await world.steps()).toEqual(['analyse']);
    expect([begun, expected]).toEqual([[TAG, `${WORK}.1`, `${WORK}.1`], [[`${WORK}.1`, 1]]]);
    expect(await world.record()).toMatchObject({ shardCount: 1, durationSeconds: 20 });
  });

  it('keeps its stored chunks if it is unchanged after all', async () => {
    handler = (request, response) => serveRanges(request, response, LONG);
    await world.create({ url });
    const put: ObjectStore['put'] = async (key, bytes) => {
      if (key.endsWith('3')) throw new Error('storage is unavailable');
      await world.ports.objects.put(key, bytes);
    };
    await expect(ingest(world.withObjects({ put }))).rejects.toThrow('storage is unavailable');
    const stored: string[] = [];
    const recordingPut: ObjectStore['put'] = async (key, bytes) => {
      stored.push(key);
      await world.ports.objects.put(key, bytes);
    };
    await ingest(world.withObjects({ put: recordingPut }), 2);
    expect(stored).toEqual([chunkKey(world.id, 3, TAG)]);
    expect(await audioIs(LONG.bytes)).toBe(true);
    expect(world.ready).toEqual([2]);
    // The second run reads from the checkpoint.
    expect(server.requests.map(({ range }) => range)).toEqual(['bytes=0-', 'bytes=0-', expect.stringMatching(/-$/)]);
    expect(Number(/\d+/.exec(server.requests[2]!.range!)![0])).toBeGreaterThan(10 * MIB);
  });

  it('while it is read is requested twice more, then fails the job with the reason', async () => {
    handler = (request, response) => {
      if (request.headers['if-range'] !== undefined) return serveRanges(request, response, OTHER);
      const range = `bytes 0-${LONG.bytes.length - 1}/${LONG.bytes.length}`;
      response.writeHead(206, { ETag: LONG.etag, 'Content-Range': range, 'Content-Length': LONG.bytes.length });
      response.write(LONG.bytes.subarray(0, MIB), () => setTimeout(() => response.destroy(), 20));
    };
    await world.create({ url });
    const message = 'The recording changed while it was being processed.';
    for (const attempt of [1, 2]) {
      await expect(ingest(world.ports, attempt)).rejects.toEqual(new RetryStep(message, attempt));
      expect((await world.record()).status).toBe('running');
    }
    await world.storage.db.prepare('UPDATE outbox SET starts = 2 WHERE job_id = ?').bind(world.id).run();
    const verdict = await handleMessage(world.ports, new Mutex(() => 0), { step: 'ingest', jobId: world.id }, 3);
    expect(verdict).toEqual({ kind: 'done' });
    expect(await world.record()).toMatchObject({ status: 'failed', error: { code: 'source_changed', message } });
  });
});

describe('two concurrent runs in two isolates', () => {
  /** The step in another isolate, which has its own slots. */
  let other: typeof ingestJob;
  beforeAll(async () => {
    vi.resetModules();
    other = (await import('./ingest.ts')).ingestJob;
  });
  const overtaken: string[] = [];
  const withLog = (ports: JobPorts): JobPorts => ({
    ...ports,
    log: (_level, event) => void (event === 'ingest_overtaken' && overtaken.push(event)),
  });
  /** A `put` that blocks at the second chunk until `release` is called. */
  function blockedPut() {
    const [isBlocked, reach] = gate();
    const [isReleased, release] = gate();
    const put: ObjectStore['put'] = async (key, bytes) => {
      if (key.endsWith('1')) {
        reach();
        await isReleased;
      }
      await world.ports.objects.put(key, bytes);
    };
    return { put, isBlocked, release };
  }
  beforeEach(async () => {
    overtaken.length = 0;
    await world.create({ url });
  });

  it('of the same file: the slower run stops, and no message is lost', async () => {
    const { put, isBlocked, release } = blockedPut();
    const ports = withLog(withSource(() => sourceOf(LONG.bytes)));
    const slow = ingest({ ...ports, objects: { ...ports.objects, put } });
    await isBlocked;
    await other(ports, await world.record(), 1);
    const complete = await world.state();
    release();
    await slow;
    expect(overtaken).toEqual(['ingest_overtaken']);
    expect(await world.state()).toEqual(complete);
    expect(complete).toMatchObject({ generation: 0, chunks: LONG_CHUNKS });
    expect(await audioIs(LONG.bytes)).toBe(true);
    expect([world.ready, await world.steps()]).toEqual([[2], ['analyse']]);
  });

  it('of two different files: their chunks are never mixed', async () => {
    const { put, isBlocked, release } = blockedPut();
    const slowPorts = withLog(withSource(() => sourceOf(LONG.bytes, 'one'), world.withObjects({ put })));
    const slow = ingest(slowPorts);
    await isBlocked;
    await other(withLog(withSource(() => sourceOf(OTHER_FILE, 'other'))), await world.record(), 1);
    release();
    await slow;
    expect(overtaken).toEqual(['ingest_overtaken']);
    expect(await world.state()).toMatchObject({ identity: 'other', generation: 1, chunks: LONG_CHUNKS });
    expect(await audioIs(OTHER_FILE, `${WORK}.1`)).toBe(true);
    expect([world.ready, await world.steps()]).toEqual([[2], ['analyse']]);
  });

  it('of a new job: one run stops before it stores a chunk', async () => {
    const [bothHaveRead, reach] = gate();
    let reads = 0;
    const getTagged: ObjectStore['getTagged'] = async (key) => {
      const found = await world.ports.objects.getTagged(key);
      if (++reads === 2) reach();
      if (reads <= 2) await bothHaveRead;
      return found;
    };
    const stored: string[] = [];
    const put: ObjectStore['put'] = async (key, bytes) => {
      stored.push(key);
      await world.ports.objects.put(key, bytes);
    };
    const ports = withLog(world.withObjects({ getTagged, put }));
    const job = await world.record();
    await Promise.all([
      ingestJob(
        withSource(() => sourceOf(LONG.bytes, 'one'), ports),
        job,
        1,
      ),
      other(
        withSource(() => sourceOf(OTHER_FILE, 'other'), ports),
        job,
        1,
      ),
    ]);
    expect(overtaken).toEqual(['ingest_overtaken']);
    const state = (await world.state())!;
    expect(state).toMatchObject({ generation: 0, chunks: LONG_CHUNKS });
    expect(await audioIs(state.identity === 'one' ? LONG.bytes : OTHER_FILE)).toBe(true);
    expect(stored).toHaveLength(LONG_CHUNKS);
    expect([world.ready, await world.steps()]).toEqual([[2], ['analyse']]);
  });
});

describe('an isolate that reads two recordings', () => {
  it('puts the message of a third recording back without counting a start', async () => {
    const [isReleased, release] = gate();
    const passes: Promise<unknown>[] = [];
    for (let count = 0; count < 2; count++) {
      const [hasBegun, reach] = gate();
      const store: ObjectStore['put'] = async (...parameters) => {
        reach();
        await isReleased;
        await world.ports.objects.put(...parameters);
      };
      await world.create({ url });
      passes.push(ingest(withSource(() => sourceOf(LONG.bytes), world.withObjects({ put: store }))));
      await hasBegun;
      world.another();
    }
    await world.create({ url });
    handler = (request, response) => serveRanges(request, response, LONG);
    const real = Date.now;
    const startedAt = real();
    // Time passes a hundred times faster while it waits.
    vi.spyOn(Date, 'now').mockImplementation(() => startedAt + (real() - startedAt) * 100);
    const message = { step: 'ingest', jobId: world.id } as const;
    expect(await handleMessage(world.ports, new Mutex(() => 0), message, 5)).toEqual({ kind: 'done' });
    vi.restoreAllMocks();
    expect(world.sent).toEqual([{ message, delaySeconds: 2 }]);
    expect(await world.row('ingest')).toMatchObject({ starts: 0, leaseUntil: NOW + 15 * 60_000 });
    expect(await storedAudio()).toHaveLength(0);
    release();
    await Promise.all(passes);
    world.ready = [];
    await handleMessage(world.ports, new Mutex(() => 0), message, 1);
    expect(world.ready).toEqual([2]);
  });

  it('decodes at most two inline recordings at a time', async () => {
    async function maxConcurrent(accounts: number): Promise<number> {
      let running = 0;
      let maxRunning = 0;
      const { objects, store } = world.ports;
      const ports: JobPorts = {
        ...world.ports,
        objects: {
          ...objects,
          get: (key) => {
            if (key.endsWith('/url')) maxRunning = Math.max(maxRunning, ++running);
            return objects.get(key);
          },
        },
        store: {
          ...store,
          fail: async (...parameters) => {
            await new Promise((done) => setTimeout(done, 60));
            running--;
            return store.fail(...parameters);
          },
        },
      };
      const jobs: JobRecord[] = [];
      for (let count = 0; count < 4; count++) {
        world.another();
        const job = await world.create({ url: 'data:,x' });
        jobs.push({ ...job, accountId: `${world.accountId}-${count % accounts}` });
      }
      await Promise.all(jobs.map((job) => ingestJob(ports, job, 1)));
      for (const { id } of jobs) {
        const error = { code: expect.stringMatching(/^audio_/) };
        expect(await world.ports.store.find(id)).toMatchObject({ status: 'failed', error });
      }
      return maxRunning;
    }
    expect([await maxConcurrent(1), await maxConcurrent(4)]).toEqual([2, 2]);
  });

  it('gets the slot of a failed step back', async () => {
    for (let count = 0; count < 3; count++) {
      world.another();
      await world.create({ url });
      const getTagged = () => Promise.reject(new Error('storage is unavailable'));
      await expect(ingest(world.withObjects({ getTagged }))).rejects.toThrow('storage is unavailable');
    }
  });
});

it('hands over when the time of an invocation is used up, and resets the starts', async () => {
  await world.create({ url: 'media://a' });
  const media: JobPorts['media'] = { resolve: async () => ({ key: 'media/a', sizeBytes: LONG.bytes.length }) };
  const ports: JobPorts = {
    ...world.ports,
    media,
    sources: { ...world.ports.sources, openObject: () => sourceOf(LONG.bytes) },
    // Each pause takes eleven minutes.
    pause: async () => {
      world.now += 11 * 60_000;
    },
  };
  const message = { step: 'ingest', jobId: world.id } as const;
  const chunks: (number | undefined)[] = [];
  for (let run = 1; run <= 10; run++) {
    world.sent = [];
    const verdict = await handleMessage(ports, new Mutex(() => 0), message, 1);
    expect(verdict).toEqual({ kind: 'done' });
    chunks.push((await world.state())?.chunks);
    if ((await world.state())?.recording) break;
    expect(world.messages()).toContainEqual(message);
    expect(await world.row('ingest')).toMatchObject({ starts: 0, leaseUntil: world.now + 15 * 60_000 });
  }
  expect(chunks).toEqual([1, 2, 3, 4]);
  expect(await audioIs(LONG.bytes)).toBe(true);
  expect(await world.steps()).toEqual(['analyse']);
});

describe('a recording that cannot be read at its server', () => {
  const requested: unknown[] = [];
  const withCopies = (ports: JobPorts): JobPorts => ({
    ...ports,
    copies: { request: async (...parameters) => void requested.push(parameters) },
  });
  beforeEach(async () => {
    requested.length = 0;
    await world.create({ url });
  });

  async function expectCopy(ports: JobPorts): Promise<void> {
    await ingest(withCopies(ports));
    expect(requested).toEqual([[world.id, url, 1024 * MIB]]);
    expect([await world.steps(), world.messages()]).toEqual([['ingest'], []]);
    expect((await world.record()).status).toBe('running');
  }

  it('is copied if the server sends no validator', async () => {
    handler = (_request, response) => void response.end(SHORT.bytes);
    await expectCopy(world.ports);
  });

  it('is copied if the server does not answer in time', async () => {
    handler = () => undefined;
    await expectCopy({ ...world.ports, sources: world.sources({ headersTimeoutMs: 50 }) });
  });

  it('is copied if its container needs seeking and the source cannot seek', async () => {
    const source: ByteSource = {
      ...memorySource(SHORT.bytes, false),
      open: async () => {
        throw new SeekNeeded('the source cannot go back');
      },
    };
    await expectCopy(withSource(() => ({ source, identity: 'a file' })));
  });

  it('is copied if the server is slow', async () => {
    const source = memorySource(LONG.bytes);
    const slow: ByteSource = {
      ...source,
      async open(offset) {
        const stream = await source.open(offset);
        return {
          async read() {
            world.now += 1000;
            return stream.read();
          },
          close: () => stream.close(),
        };
      },
    };
    await expectCopy(withSource(() => ({ source: slow, identity: 'a file' })));
  });

  it('is read from its copy at any speed', async () => {
    handler = (_request, response) => void response.writeHead(404).end();
    await bucketObjects.put(copyKey(world.id), LONG.bytes);
    const { sources } = world.ports;
    const openObject: typeof sources.openObject = (object) => {
      const opened = sources.openObject(object);
      const { source } = opened;
      const open: ByteSource['open'] = async (offset) => {
        const stream = await source.open(offset);
        return {
          async read() {
            world.now += 1000;
            return stream.read();
          },
          close: () => stream.close(),
        };
      };
      return { ...opened, source: { sizeBytes: source.sizeBytes, canSeek: true, read: source.read, open } };
    };
    const ports = withCopies({ ...world.ports, sources: { ...sources, openObject } });
    // A long read is handed over several times.
    for (let run = 0; run < 9 && !(await world.state())?.recording; run++) await ingest(ports);
    expect([requested, server.requests]).toEqual([[], []]);
    expect(await audioIs(LONG.bytes)).toBe(true);
    expect(await world.steps()).toEqual(['analyse']);
  });
});

describe('limits', () => {
  /** Creates an upload. @returns its key */
  async function upload(name: string, at: number, sizeBytes: number): Promise<string> {
    const [key, rows] = [`media/${world.accountId}/${name}`, createMediaRows(world.storage.db)];
    await rows.claim(world.accountId, key, at, at + MEDIA_TTL_MS);
    await rows.publish(world.accountId, name, key, sizeBytes, at, at + MEDIA_TTL_MS);
    return key;
  }

  it('refuses an upload of unknown size that turns out to be larger than 1 GiB', async () => {
    await upload('b', NOW, 1024 ** 3 + 1);
    await world.create({ url: 'media://b' });
    await ingest();
    const message = 'The recording is larger than the limit of 1 GiB.';
    expect(await world.record()).toMatchObject({ status: 'failed', error: { code: 'source_too_large', message } });
  });

  it('refuses a voice above 100 MiB, and limits its copy to that size', async () => {
    await upload('v', NOW, 100 * MIB + 1);
    await world.create({ url: 'media://v' }, 'voiceprint');
    await ingest();
    const message = 'The recording is larger than the limit of 100 MiB.';
    expect(await world.record()).toMatchObject({ status: 'failed', error: { code: 'source_too_large', message } });
    world.another();
    await world.create({ url }, 'voiceprint');
    const request = vi.fn(async () => undefined);
    await ingest({ ...withSource(() => 'copy'), copies: { request } });
    expect(request).toHaveBeenCalledWith(world.id, url, 100 * MIB);
  });

  it('reads an upload that was valid when its job was created, even after its 48 hours', async () => {
    const read = async (acceptedAt: number) => {
      world.another();
      world.now = acceptedAt;
      await world.create({ url: 'media://b' });
      world.now = NOW + MEDIA_TTL_MS + 3600_000;
      await ingest();
      return world.record();
    };
    await bucketObjects.put(await upload('b', NOW, SHORT.bytes.length), SHORT.bytes);
    expect(await read(NOW + MEDIA_TTL_MS - 1)).toMatchObject({ status: 'running', shardCount: 1 });
    expect(await read(NOW + MEDIA_TTL_MS)).toMatchObject({ status: 'failed', error: { code: 'source_not_found' } });
  });

  it('accepts a voice of at most 30 seconds plus the padding of encoders', async () => {
    const read = async (seconds: number) => {
      world.another();
      await world.create({ url }, 'voiceprint');
      const file = wavFile({ sampleRateHz: 8000, channels: 1, tag: 1, bits: 8 }, new Uint8Array(8000 * seconds));
      await ingest(withSource(() => sourceOf(file)));
      const { error, status } = await world.record();
      return { status, error, steps: await world.steps() };
    };
    expect(await read(30.2)).toEqual({ status: 'running', error: undefined, steps: ['analyse'] });
    const message = 'The recording is longer than 30 seconds, the maximum for a voiceprint; send a part of it.';
    expect(await read(30.3)).toEqual({ status: 'failed', error: { code: 'audio_too_long', message }, steps: [] });
  });

  it('accepts a recording of at most 24 hours plus the padding of encoders', async () => {
    const day = 24 * 3600;
    const read = async (seconds: number) => {
      world.another();
      const job = await world.create({ url });
      const source = silence(seconds);
      // All but the last minutes are read already.
      const chunks = 574;
      const identity = 'a file';
      await world.ports.store.start(job.id, NOW);
      const checkpoint = await checkpointAfter(chunks);
      await world.putState({ generation: 0, identity, model: 'precision-2', chunks, checkpoint });
      await ingest(withSource(() => ({ source, identity })));
      const { error, shardCount } = await world.record();
      return { error, shardCount, ready: world.ready.at(-1), steps: (await world.steps()).length };
    };
    expect(await read(day + 0.2)).toEqual({ error: undefined, shardCount: 289, ready: 289, steps: 1 });
    const message = 'The recording is longer than 24 hours; split it into shorter files.';
    expect(await read(day + 0.3)).toMatchObject({ error: { code: 'audio_too_long', message }, steps: 0 });
  });
});

const SILENCE_RATE = 8000;

/** A WAV file of silence, one byte per sample. */
function silence(seconds: number): ByteSource {
  const dataBytes = Math.round(SILENCE_RATE * seconds);
  const header = wavHeader({ sampleRateHz: SILENCE_RATE, channels: 1, tag: 1, bits: 8 }, dataBytes);
  const sizeBytes = header.length + dataBytes;
  const read = (offset: number, length: number): Uint8Array => {
    const bytes = new Uint8Array(Math.max(0, Math.min(length, sizeBytes - offset))).fill(128);
    if (offset < header.length) bytes.set(header.subarray(offset, offset + bytes.length));
    return bytes;
  };
  return {
    sizeBytes,
    canSeek: true,
    read: async (offset, length) => read(offset, length),
    async open(offset) {
      let at = offset;
      return {
        async read() {
          const bytes = read(at, 1 << 16);
          at += bytes.length;
          return bytes.length > 0 ? bytes : undefined;
        },
        close() {},
      };
    },
  };
}

/** Checkpoint of a file of silence after `chunks` chunks, derived from an earlier one because all packets are equal. */
async function checkpointAfter(chunks: number): Promise<Checkpoint> {
  const { ingest: pass } = await import('../ingest/pass.ts');
  let last: Checkpoint | undefined;
  const ports = {
    audio: world.ports.codecs(),
    admit: async () => undefined,
    now: () => 0,
    pause: async () => undefined,
    store: async () => undefined,
    stored: async (_chunks: number, checkpoint: Checkpoint) => {
      last = checkpoint;
    },
    progress: async () => undefined,
  };
  await pass(silence(400), ports, { maxSeconds: 500, endsWhenSlow: false });
  const { restart } = last!;
  const packetSamples = restart!.clock.position / restart!.packets;
  const sample = chunks * CHUNK_SAMPLES;
  // Start two packets earlier, for the resampler.
  const packets = Math.floor((sample * SILENCE_RATE) / 16_000 / packetSamples) - 2;
  const skippedSamples = (packets - restart!.packets) * packetSamples;
  return {
    sample,
    restart: {
      ...restart!,
      packets,
      entry: restart!.entry! + skippedSamples,
      clock: { ...restart!.clock, position: packets * packetSamples },
      faults: { ...restart!.faults, passedBytes: packets * packetSamples },
    },
  };
}

it('requests from an unreachable server three times, then fails the job with the reason', async () => {
  handler = (_request, response) => void response.destroy();
  await world.create({ url });
  const message = `The server ${new URL(url).host} could not be reached.`;
  for (const attempt of [1, 2]) {
    await expect(ingest(world.ports, attempt)).rejects.toEqual(new RetryStep(message, attempt));
    expect((await world.record()).status).toBe('running');
  }
  await ingest(world.ports, 3);
  expect(await world.record()).toMatchObject({ status: 'failed', error: { code: 'source_unreachable', message } });
});

it('fails a job whose inline recording is missing or whose file is not audio', async () => {
  await world.create({ url: 'data:,x' });
  await world.ports.objects.deleteMany([`work/${world.id}/url`]);
  await ingest();
  expect(await world.record()).toMatchObject({ status: 'failed', error: { code: 'source_gone' } });
  world.another();
  await world.create({ url });
  await ingest(withSource(() => sourceOf(new TextEncoder().encode('a letter '.repeat(99)))));
  expect(await world.record()).toMatchObject({ status: 'failed', error: { code: 'audio_not_audio' } });
  expect([await world.steps(), await world.workKeys()]).toEqual([[], []]);
});

describe('a run whose job changes meanwhile', () => {
  const CANCELED = { code: 'canceled', message: 'x' };

  it.each<[string, number, (store: JobStore) => Promise<boolean>]>([
    [
      'keeps the working data of a job whose ingest was finished by another run',
      2,
      async (store) => store.finishIngest(await world.record(), { shardCount: 1, durationSeconds: 1 }, NOW),
    ],
    ['removes the working data of a canceled job', 0, (store) => store.cancel(world.id, CANCELED, NOW)],
    ['removes the working data of a deleted job', 0, (store) => store.remove(world.accountId, world.id, NOW)],
  ])('%s', async (_title, objects, change) => {
    await world.create({ url });
    const { store } = world.ports;
    let before = 0;
    const finishIngest: JobStore['finishIngest'] = async (...parameters) => {
      before = (await world.workKeys()).length;
      expect(await change(store)).toBe(true);
      return store.finishIngest(...parameters);
    };
    await ingest(world.withStore({ finishIngest }));
    // Two objects: the state and one chunk.
    expect([before, (await world.workKeys()).length]).toEqual([2, objects]);
  });

  it('stops reading when its job is canceled', async () => {
    await world.create({ url });
    const controller = new AbortController();
    let readBytes = 0;
    let isClosed = false;
    const source = memorySource(LONG.bytes);
    const counted: ByteSource = {
      ...source,
      async open(offset) {
        const stream = await source.open(offset);
        return {
          async read() {
            const bytes = await stream.read();
            readBytes += bytes?.length ?? 0;
            if (readBytes > 2 * MIB) controller.abort();
            return bytes;
          },
          close: () => stream.close(),
        };
      },
    };
    const close = () => {
      isClosed = true;
    };
    const ports = withSource(() => ({ source: counted, identity: 'a file', close }));
    const reading = ingestJob(ports, await world.record(), 1, controller.signal);
    await expect(reading).rejects.toMatchObject({ name: 'JobGone' });
    expect([readBytes < 5 * MIB, isClosed]).toEqual([true, true]);
  });
});

it('continues a broken connection at the next byte', async () => {
  const answers: ServerResponse[] = [];
  handler = (request, response) => {
    answers.push(response);
    if (answers.length > 1) return serveRanges(request, response, LONG);
    response.writeHead(206, {
      ETag: LONG.etag,
      'Content-Range': `bytes 0-${LONG.bytes.length - 1}/${LONG.bytes.length}`,
      'Content-Length': LONG.bytes.length,
    });
    response.write(LONG.bytes.subarray(0, 5 * MIB), () => setTimeout(() => response.destroy(), 20));
  };
  await world.create({ url });
  await ingest();
  expect(await audioIs(LONG.bytes)).toBe(true);
  expect(server.requests).toHaveLength(2);
  expect(Number(/\d+/.exec(server.requests[1]!.range!)![0])).toBeGreaterThan(0);
});
