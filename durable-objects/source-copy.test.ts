import { randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { DiarizeRequest } from '../src/contract/diarize.ts';
import type { JobStore } from '../src/jobs/job-store.ts';
import { copyKey } from '../src/jobs/work-keys.ts';
import { createJobStore } from '../src/platform/d1/job-rows.ts';
import type { CopyRpc } from '../src/platform/object-stubs.ts';
import { random } from '../test/helpers/audio.ts';
import { serveRanges, startServer, type TestServer } from '../test/helpers/http-server.ts';
import type { Handler } from '../test/helpers/sources.ts';
import { startWorkers } from '../test/helpers/workerd.ts';

/**
 * The object that copies a recording, in workerd, on its own storage, a real database and bucket, from a real server;
 * nobody works off what it sends.
 */
const FRONT = `
import { SourceCopy as Real } from './worker.js';
const machine = Date.now;
export class SourceCopy extends Real {
  constructor(state, env) { super(state, { ...env, ALLOW_LOOPBACK: '1' }); }
  async alarmIn() { const at = await this.ctx.storage.getAlarm(); return at === null ? null : at - machine(); }
  async ring() { await this.ctx.storage.setAlarm(machine()); }
  async later(ms) { Date.now = () => machine() + ms; }
  async loseMemory() { this.ctx.abort(); }
  async kept() { return Object.fromEntries(await this.ctx.storage.list()); }
}`;

interface Opened extends CopyRpc {
  /** Milliseconds until its alarm; null without one. */
  alarmIn(): Promise<number | null>;
  /** Its alarm comes now. */
  ring(): Promise<void>;
  /** The clock of the service goes fast by so many milliseconds. */
  later(ms: number): Promise<void>;
  /** The call fails. */
  loseMemory(): Promise<void>;
  kept(): Promise<Record<string, unknown>>;
}

const MIB = 1024 ** 2;
const MINUTE = 60_000;
const PART = 5 * MIB;
const GIB = 1024 * MIB;
/** A busy machine takes its time. */
const SOON = { timeout: 20_000 };
const ETAG = '"v1"';
const next = random(5);
/** More than two parts. */
const BYTES = new Uint8Array(12 * MIB + 345).map(() => Math.floor(next() * 256));

let worker: Awaited<ReturnType<typeof startWorkers>>;
let store: JobStore;
let objects: DurableObjectNamespace;
let server: TestServer;
let handler: Handler;
beforeAll(async () => {
  server = await startServer((request, response) => handler(request, response));
  worker = await startWorkers({ jobs: FRONT });
  store = createJobStore(worker.db);
  objects = await worker.objects('SOURCE_COPY');
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

// The binding's type does not say which class stands after it.
const objectOf = (id: string) => objects.get(objects.idFromName(id)) as unknown as Opened;

/** A running job whose recording is being read. */
async function running(): Promise<string> {
  const id = randomUUID();
  const request = { url: `${server.origin}/a.wav` } as DiarizeRequest;
  await store.create({ accountId: 'a', kind: 'diarize', request, id, now: Date.now() });
  await store.start(id, Date.now());
  return id;
}

/** The copy of a new job's recording is asked for. */
async function requested(maxBytes = GIB) {
  const id = await running();
  const object = objectOf(id);
  await object.request(id, `${server.origin}/a.wav`, maxBytes);
  return { id, object };
}

const copyOf = async (id: string) => {
  const copy = await worker.bucket.get(copyKey(id));
  return copy && new Uint8Array(await copy.arrayBuffer());
};
/** Whether the job's message has been sent, a moment ago. */
const isSent = async (id: string) => {
  const row = await store.outboxRow(`${id}/ingest`);
  return row !== undefined && row.leaseUntil > Date.now() + 10 * MINUTE;
};
const uploads = async () => (await worker.bucket.list({ prefix: 'uploads/' })).objects.length;

async function expectCopied(id: string, object: Opened, bytes = BYTES): Promise<void> {
  await expect.poll(() => isSent(id), SOON).toBe(true);
  expect(Buffer.compare((await copyOf(id))!, bytes)).toBe(0);
  await expect.poll(() => object.kept(), SOON).toEqual({});
  expect([await object.alarmIn(), await uploads()]).toEqual([null, 0]);
  expect((await store.find(id))?.status).toBe('running');
}

async function expectFailed(id: string, object: Opened, code: string): Promise<void> {
  await expect.poll(async () => (await store.find(id))?.error?.code, SOON).toBe(code);
  await expect.poll(() => object.kept(), SOON).toEqual({});
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
  it('is made of a source without ranges, of unknown length, and has the recording read', async () => {
    handler = (_request, response) => void response.end(BYTES);
    const { id, object } = await requested();
    await expectCopied(id, object);
    expect(server.requests).toHaveLength(1);
  });

  it('is made of a small one', async () => {
    handler = (_request, response) => void response.end(BYTES.subarray(0, 100));
    const { id, object } = await requested();
    await expectCopied(id, object, BYTES.subarray(0, 100));
  });

  it('is made once where it is asked for twice', async () => {
    let rest = () => {};
    handler = (_request, response) => {
      begin(response, 6 * MIB);
      rest = () => void response.end(BYTES.subarray(6 * MIB));
    };
    const { id, object } = await requested();
    await expect.poll(() => server.requests.length, SOON).toBe(1);
    await object.request(id, `${server.origin}/a.wav`, GIB);
    rest();
    await expectCopied(id, object);
    expect(server.requests).toHaveLength(1);
  });

  it('continues after the parts that are stored where the connection broke and the object was lost', async () => {
    let isAway = false;
    handler = (request, response) => {
      if (isAway) return void response.destroy();
      if (request.headers['if-range'] !== undefined)
        return serveRanges(request, response, { bytes: BYTES, etag: ETAG });
      isAway = true;
      response.writeHead(206, WHOLE_RANGE).write(BYTES.subarray(0, 7 * MIB), () => {
        setTimeout(() => response.destroy(), 200);
      });
    };
    const { id, object } = await requested();
    await expect.poll(async () => (await object.kept()).tries, SOON).toBe(1);
    expect((await object.kept()).state).toMatchObject({ copiedBytes: PART, sizeBytes: BYTES.length, validator: ETAG });
    // The pause before the next try does not have the message sent beside it.
    const pauseMs = (await object.alarmIn())!;
    expect(pauseMs).toBeLessThanOrEqual(5000);
    expect((await store.outboxRow(`${id}/ingest`))!.leaseUntil).toBeGreaterThan(Date.now() + pauseMs + MINUTE / 2);
    await object.loseMemory().catch(() => undefined);
    isAway = false;
    server.requests.length = 0;
    const again = objectOf(id);
    await again.ring();
    await expectCopied(id, again);
    expect(server.requests).toEqual([{ path: '/a.wav', range: `bytes=${PART}-` }]);
  });

  it('continues in another call where its time is up', async () => {
    let rest = () => {};
    handler = (request, response) => {
      if (request.headers['if-range'] !== undefined)
        return serveRanges(request, response, { bytes: BYTES, etag: ETAG });
      response.writeHead(206, WHOLE_RANGE).write(BYTES.subarray(0, 7 * MIB));
      rest = () => void response.write(BYTES.subarray(7 * MIB, 8 * MIB));
    };
    const { id, object } = await requested();
    await expect.poll(async () => (await object.kept()).state, SOON).toMatchObject({ copiedBytes: PART });
    await object.later(13 * MINUTE);
    try {
      rest();
      await expect.poll(() => object.alarmIn(), SOON).not.toBeNull();
    } finally {
      await object.later(0);
    }
    await object.ring();
    await expectCopied(id, object);
    expect(server.requests.at(-1)).toEqual({ path: '/a.wav', range: `bytes=${PART}-` });
  });

  it('is made again of a file that changed under it', async () => {
    const other = BYTES.map((byte) => byte ^ 255);
    let asked = 0;
    handler = (request, response) => {
      if (asked++ > 0) return serveRanges(request, response, { bytes: other, etag: '"v2"' });
      response.writeHead(206, WHOLE_RANGE).write(BYTES.subarray(0, 7 * MIB), () => {
        setTimeout(() => response.destroy(), 200);
      });
    };
    const { id, object } = await requested();
    await expect.poll(async () => (await object.kept()).tries, SOON).toBe(1);
    expect([(await object.kept()).state, await uploads()]).toEqual([undefined, 0]);
    await object.ring();
    await expectCopied(id, object, other);
  });
});

describe('a copy that is given up', () => {
  it('fails its job as unreachable after three pauses', async () => {
    handler = (_request, response) => void response.destroy();
    const { id, object } = await requested();
    const pauses = [5000, 15_000, 60_000];
    for (const [tries, pauseMs] of pauses.entries()) {
      await expect.poll(async () => (await object.kept()).tries, SOON).toBe(tries + 1);
      await expect.poll(() => object.alarmIn(), SOON).toBeGreaterThan(pauseMs - 4000);
      expect(await object.alarmIn()).toBeLessThanOrEqual(pauseMs);
      expect((await store.find(id))?.status).toBe('running');
      await object.ring();
    }
    await expectFailed(id, object, 'source_unreachable');
    expect(server.requests).toHaveLength(pauses.length + 1);
  });

  it('fails it as too slow where nothing could be resumed', async () => {
    let rest = () => {};
    handler = (_request, response) => {
      begin(response, 6 * MIB);
      rest = () => void response.write(BYTES.subarray(6 * MIB, 7 * MIB));
    };
    const { id, object } = await requested();
    // A part is there.
    await expect.poll(uploads, SOON).toBe(1);
    await object.later(13 * MINUTE);
    try {
      rest();
      await expectFailed(id, object, 'source_too_slow');
    } finally {
      await object.later(0);
    }
    expect((await store.find(id))?.error?.message).toMatch(/sends too slowly: .* MiB in 12 minutes/);
  });

  it('fails it at once where no other try can help', async () => {
    handler = (_request, response) => void response.end(BYTES);
    const large = await requested(6 * MIB);
    await expectFailed(large.id, large.object, 'source_too_large');
    handler = (_request, response) => void response.writeHead(404).end();
    const gone = await requested();
    await expectFailed(gone.id, gone.object, 'source_http_status');
    expect(server.requests).toHaveLength(2);
  });
});

describe('the copy of a job that has ended', () => {
  const end = (id: string) => store.cancel(id, { code: 'canceled', message: 'x' }, Date.now());

  it('is not begun', async () => {
    const id = await running();
    await end(id);
    const object = objectOf(id);
    await object.request(id, `${server.origin}/a.wav`, GIB);
    await expect.poll(() => object.kept(), SOON).toEqual({});
    expect([server.requests, await copyOf(id), await object.alarmIn()]).toEqual([[], null, null]);
  });

  it('is dropped in its middle, and the connection with it: it went on to its end', async () => {
    let isDropped = false;
    handler = (_request, response) => {
      begin(response, 6 * MIB);
      const drip = setInterval(() => response.write(BYTES.subarray(0, 100_000)), 200);
      response.on('close', () => {
        isDropped = true;
        clearInterval(drip);
      });
    };
    const { id, object } = await requested();
    await expect.poll(uploads, SOON).toBe(1);
    await end(id);
    await expect.poll(() => object.kept(), SOON).toEqual({});
    await expect.poll(() => isDropped, SOON).toBe(true);
    expect([await copyOf(id), await uploads(), await object.alarmIn()]).toEqual([null, 0, null]);
    expect(await isSent(id)).toBe(false);
  });
});
