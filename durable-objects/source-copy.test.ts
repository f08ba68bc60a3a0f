import { randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { DiarizeRequest } from '../src/contract/diarize.ts';
import type { JobStore } from '../src/jobs/job-store.ts';
import { copyKey } from '../src/jobs/work-keys.ts';
import { createJobStore } from '../src/platform/d1/job-rows.ts';
import { random } from '../test/helpers/audio.ts';
import { serveRanges, startServer, type TestServer } from '../test/helpers/http-server.ts';
import type { Handler } from '../test/helpers/sources.ts';
import { startWorkers } from '../test/helpers/workerd.ts';
import type { TestedSourceCopy } from '../test/workers/tested-objects.ts';

/**
 * The object that copies a recording, in workerd, with its own storage, a real database, bucket and server. No consumer
 * handles the messages that it sends.
 */

const MIB = 1024 ** 2;
const MINUTE = 60_000;
const PART = 5 * MIB;
const GIB = 1024 * MIB;
/** Generous, because the machine may be busy. */
const POLLING = { timeout: 20_000 };
const ETAG = '"v1"';
const next = random(5);
/** More than two parts. */
const BYTES = new Uint8Array(12 * MIB + 345).map(() => Math.floor(next() * 256));

let worker: Awaited<ReturnType<typeof startWorkers>>;
let store: JobStore;
let objectOf: (jobId: string) => TestedSourceCopy;
let server: TestServer;
let handler: Handler;
beforeAll(async () => {
  server = await startServer((request, response) => handler(request, response));
  worker = await startWorkers({ jobs: 'source-copy-front' });
  store = createJobStore(worker.db);
  objectOf = await worker.objects<TestedSourceCopy>('SOURCE_COPY');
  await worker.db
    .prepare(`INSERT INTO accounts (id, name, credit_seconds, created_at) VALUES ('a', 'a', 1e6, 0)`)
    .run();
});
afterAll(async () => {
  await worker?.stop();
  await server?.close();
});
beforeEach(() => {
  server.requests.length = 0;
  handler = (request, response) => serveRanges(request, response, { bytes: BYTES, etag: ETAG });
});

/** Creates a running job whose recording is being read. */
async function createRunning(): Promise<string> {
  const id = randomUUID();
  const request = { url: `${server.origin}/a.wav` } as DiarizeRequest;
  await store.create({ accountId: 'a', kind: 'diarize', request, id, now: Date.now() });
  await store.start(id, Date.now());
  return id;
}

/** Creates a job and requests the copy of its recording. */
async function requestCopy(maxBytes = GIB) {
  const id = await createRunning();
  const object = objectOf(id);
  await object.request(id, `${server.origin}/a.wav`, maxBytes);
  return { id, object };
}

const copyOf = async (id: string) => {
  const copy = await worker.bucket.get(copyKey(id));
  return copy && new Uint8Array(await copy.arrayBuffer());
};
/** Whether the job's message was just sent. */
const isSent = async (id: string) => {
  const row = await store.outboxRow(`${id}/ingest`);
  return row !== undefined && row.leaseUntil > Date.now() + 10 * MINUTE;
};
const uploads = async () => (await worker.bucket.list({ prefix: 'uploads/' })).objects.length;

async function expectCopied(id: string, object: TestedSourceCopy, bytes = BYTES): Promise<void> {
  await expect.poll(() => isSent(id), POLLING).toBe(true);
  expect(Buffer.compare((await copyOf(id))!, bytes)).toBe(0);
  await expect.poll(() => object.stored(), POLLING).toEqual({});
  expect([await object.alarmIn(), await uploads()]).toEqual([null, 0]);
  expect((await store.find(id))?.status).toBe('running');
}

async function expectFailed(id: string, object: TestedSourceCopy, code: string): Promise<void> {
  await expect.poll(async () => (await store.find(id))?.error?.code, POLLING).toBe(code);
  await expect.poll(() => object.stored(), POLLING).toEqual({});
  expect([await object.alarmIn(), await copyOf(id), await uploads()]).toEqual([null, null, 0]);
  expect(await store.outboxRow(`${id}/ingest`)).toBeUndefined();
}

/** Sends the first bytes of the file and leaves the answer open. */
function begin(response: ServerResponse, bytes: number, headers: Record<string, string | number> = {}): void {
  response.writeHead(200, headers);
  response.write(BYTES.subarray(0, bytes));
}
const WHOLE_RANGE = {
  ETag: ETAG,
  'Content-Range': `bytes 0-${BYTES.length - 1}/${BYTES.length}`,
  'Content-Length': BYTES.length,
};

describe('a copy', () => {
  it('of a source without ranges and of unknown length succeeds and queues the ingest', async () => {
    handler = (_request, response) => void response.end(BYTES);
    const { id, object } = await requestCopy();
    await expectCopied(id, object);
    expect(server.requests).toHaveLength(1);
  });

  it('of a small file succeeds', async () => {
    handler = (_request, response) => void response.end(BYTES.subarray(0, 100));
    const { id, object } = await requestCopy();
    await expectCopied(id, object, BYTES.subarray(0, 100));
  });

  it('that is requested twice is made once', async () => {
    let sendMore = () => {};
    handler = (_request, response) => {
      begin(response, 6 * MIB);
      sendMore = () => void response.end(BYTES.subarray(6 * MIB));
    };
    const { id, object } = await requestCopy();
    await expect.poll(() => server.requests.length, POLLING).toBe(1);
    await object.request(id, `${server.origin}/a.wav`, GIB);
    sendMore();
    await expectCopied(id, object);
    expect(server.requests).toHaveLength(1);
  });

  it('continues after its stored parts when the connection broke and the object was reset', async () => {
    let isDown = false;
    handler = (request, response) => {
      if (isDown) return void response.destroy();
      if (request.headers['if-range'] !== undefined)
        return serveRanges(request, response, { bytes: BYTES, etag: ETAG });
      isDown = true;
      response.writeHead(206, WHOLE_RANGE).write(BYTES.subarray(0, 7 * MIB), () => {
        setTimeout(() => response.destroy(), 200);
      });
    };
    const { id, object } = await requestCopy();
    await expect.poll(async () => (await object.stored()).tries, POLLING).toBe(1);
    expect((await object.stored()).state).toMatchObject({
      copiedBytes: PART,
      sizeBytes: BYTES.length,
      validator: ETAG,
    });
    // The lease of the message covers the pause before the next try.
    const pauseMs = (await object.alarmIn())!;
    expect(pauseMs).toBeLessThanOrEqual(5000);
    expect((await store.outboxRow(`${id}/ingest`))!.leaseUntil).toBeGreaterThan(Date.now() + pauseMs + MINUTE / 2);
    await object.loseMemory().catch(() => undefined);
    isDown = false;
    server.requests.length = 0;
    const again = objectOf(id);
    await again.runAlarmNow();
    await expectCopied(id, again);
    expect(server.requests).toEqual([{ path: '/a.wav', range: `bytes=${PART}-` }]);
  });

  it('continues in the next alarm when its time is used up', async () => {
    let sendMore = () => {};
    handler = (request, response) => {
      if (request.headers['if-range'] !== undefined)
        return serveRanges(request, response, { bytes: BYTES, etag: ETAG });
      response.writeHead(206, WHOLE_RANGE).write(BYTES.subarray(0, 7 * MIB));
      sendMore = () => void response.write(BYTES.subarray(7 * MIB, 8 * MIB));
    };
    const { id, object } = await requestCopy();
    await expect.poll(async () => (await object.stored()).state, POLLING).toMatchObject({ copiedBytes: PART });
    await object.setClockAhead(13 * MINUTE);
    try {
      sendMore();
      await expect.poll(() => object.alarmIn(), POLLING).not.toBeNull();
    } finally {
      await object.setClockAhead(0);
    }
    await object.runAlarmNow();
    await expectCopied(id, object);
    expect(server.requests.at(-1)).toEqual({ path: '/a.wav', range: `bytes=${PART}-` });
  });

  it('starts again when the file changes', async () => {
    const other = BYTES.map((byte) => byte ^ 255);
    let requests = 0;
    handler = (request, response) => {
      if (requests++ > 0) return serveRanges(request, response, { bytes: other, etag: '"v2"' });
      response.writeHead(206, WHOLE_RANGE).write(BYTES.subarray(0, 7 * MIB), () => {
        setTimeout(() => response.destroy(), 200);
      });
    };
    const { id, object } = await requestCopy();
    await expect.poll(async () => (await object.stored()).tries, POLLING).toBe(1);
    expect([(await object.stored()).state, await uploads()]).toEqual([undefined, 0]);
    await object.runAlarmNow();
    await expectCopied(id, object, other);
  });
});

describe('a copy that is given up', () => {
  it('fails its job with source_unreachable after three pauses', async () => {
    handler = (_request, response) => void response.destroy();
    const { id, object } = await requestCopy();
    const pauses = [5000, 15_000, 60_000];
    for (const [tries, pauseMs] of pauses.entries()) {
      await expect.poll(async () => (await object.stored()).tries, POLLING).toBe(tries + 1);
      await expect.poll(() => object.alarmIn(), POLLING).toBeGreaterThan(pauseMs - 4000);
      expect(await object.alarmIn()).toBeLessThanOrEqual(pauseMs);
      expect((await store.find(id))?.status).toBe('running');
      await object.runAlarmNow();
    }
    await expectFailed(id, object, 'source_unreachable');
    expect(server.requests).toHaveLength(pauses.length + 1);
  });

  it('fails its job with source_too_slow if it cannot be resumed', async () => {
    let sendMore = () => {};
    handler = (_request, response) => {
      begin(response, 6 * MIB);
      sendMore = () => void response.write(BYTES.subarray(6 * MIB, 7 * MIB));
    };
    const { id, object } = await requestCopy();
    // Wait until a part is stored.
    await expect.poll(uploads, POLLING).toBe(1);
    await object.setClockAhead(13 * MINUTE);
    try {
      sendMore();
      await expectFailed(id, object, 'source_too_slow');
    } finally {
      await object.setClockAhead(0);
    }
    expect((await store.find(id))?.error?.message).toMatch(/sends too slowly: .* MiB in 12 minutes/);
  });

  it('fails its job at once if a retry cannot help', async () => {
    handler = (_request, response) => void response.end(BYTES);
    const large = await requestCopy(6 * MIB);
    await expectFailed(large.id, large.object, 'source_too_large');
    handler = (_request, response) => void response.writeHead(404).end();
    const gone = await requestCopy();
    await expectFailed(gone.id, gone.object, 'source_http_status');
    expect(server.requests).toHaveLength(2);
  });
});

describe('the copy of a job that has ended', () => {
  const end = (id: string) => store.cancel(id, { code: 'canceled', message: 'x' }, Date.now());

  it('is not begun', async () => {
    const id = await createRunning();
    await end(id);
    const object = objectOf(id);
    await object.request(id, `${server.origin}/a.wav`, GIB);
    await expect.poll(() => object.stored(), POLLING).toEqual({});
    expect([server.requests, await copyOf(id), await object.alarmIn()]).toEqual([[], null, null]);
  });

  it('is dropped in the middle together with its connection', async () => {
    let isDropped = false;
    handler = (_request, response) => {
      begin(response, 6 * MIB);
      const drip = setInterval(() => response.write(BYTES.subarray(0, 100_000)), 200);
      response.on('close', () => {
        isDropped = true;
        clearInterval(drip);
      });
    };
    const { id, object } = await requestCopy();
    await expect.poll(uploads, POLLING).toBe(1);
    await end(id);
    await expect.poll(() => object.stored(), POLLING).toEqual({});
    await expect.poll(() => isDropped, POLLING).toBe(true);
    expect([await copyOf(id), await uploads(), await object.alarmIn()]).toEqual([null, 0, null]);
    expect(await isSent(id)).toBe(false);
  });
});
