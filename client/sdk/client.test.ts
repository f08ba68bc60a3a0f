import type { IncomingMessage, ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { startServer, type TestServer } from '../../test/helpers/http-server.ts';
import { RollcallClient } from './client.ts';
import type { Outcome } from './types.ts';

interface ReceivedRequest {
  readonly method?: string;
  readonly path?: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

let server: TestServer;
let url: string;
let requests: ReceivedRequest[];
let answers: ((response: ServerResponse) => void)[];

const json = (status: number, body: unknown) => (response: ServerResponse) => {
  response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));
};
const job = (status: string) => json(200, { jobId: 'j', status, createdAt: '', updatedAt: '' });

const throwMissing = (): never => {
  throw new TypeError('is not a function');
};

beforeEach(async () => {
  requests = [];
  answers = [];
  server = await startServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { method, url: path, headers } = request;
    requests.push({ method, path, headers, body: Buffer.concat(chunks).toString() });
    (answers.shift() ?? json(500, { requestId: 'r', message: 'no answer left' }))(response);
  });
  url = server.origin;
});

afterEach(() => server.close());

describe('RollcallClient', () => {
  it('lists and removes jobs, reads usage, and gets download addresses', async () => {
    const page = { items: [{ id: 'j', status: 'succeeded', createdAt: '' }], nextCursor: null };
    const usage = { from: '', to: '', totals: {}, days: [] };
    const noContent = (response: ServerResponse) => void response.writeHead(204).end();
    answers = [
      json(200, page),
      noContent,
      json(200, usage),
      json(201, { url: 'https://example.com/d' }),
      json(404, { message: 'Not found.' }),
    ];
    const client = new RollcallClient({ url, key: 'k' });
    expect(await client.list({ status: 'succeeded', limit: 5, cursor: 'a b' })).toEqual({ ok: true, value: page });
    expect(await client.remove('j/1')).toEqual({ ok: true, value: undefined });
    expect(await client.usage()).toEqual({ ok: true, value: usage });
    expect(await client.downloadUrl('a/b')).toEqual({ ok: true, value: 'https://example.com/d' });
    expect(await client.remove('k')).toMatchObject({ ok: false, error: { kind: 'refused', status: 404 } });
    expect(requests.map(({ method, path, body }) => [method, path, body])).toEqual([
      ['GET', '/v1/jobs?status=succeeded&limit=5&cursor=a+b', ''],
      ['DELETE', '/v1/jobs/j%2F1', ''],
      ['GET', '/v1/usage', ''],
      ['POST', '/v1/media/output', '{"url":"media://a/b"}'],
      ['DELETE', '/v1/jobs/k', ''],
    ]);
  });

  it('sends the API key, the request and the idempotency key', async () => {
    answers = [json(200, { jobId: 'j', status: 'created' })];
    const client = new RollcallClient({ url: `${url}/`, key: 'k' });
    const created = await client.diarize({ url: 'https://example.com/a.wav', numSpeakers: 2 }, 'once');
    expect(created).toEqual({ ok: true, value: { jobId: 'j', status: 'created' } });
    expect(requests[0]).toMatchObject({ method: 'POST', path: '/v1/diarize' });
    expect(requests[0].headers).toMatchObject({ authorization: 'Bearer k', 'idempotency-key': 'once' });
    expect(JSON.parse(requests[0].body)).toEqual({ url: 'https://example.com/a.wav', numSpeakers: 2 });
  });

  it('reports answers without required members as unexpected, and does not throw', async () => {
    const client = new RollcallClient({ url, key: 'k' });
    const expected = { ok: false, error: { kind: 'unexpected', status: 200 } };
    for (const answer of [null, 1, [], {}, { jobId: 1, url: 1, id: 1 }]) {
      answers = Array(5).fill(json(200, answer));
      expect(await client.diarize({ url: 'https://example.com/a.wav' })).toMatchObject(expected);
      expect(await client.upload('talk', new Uint8Array(1))).toMatchObject(expected);
      expect(await client.wait('j')).toMatchObject(expected);
      expect(await client.createLive()).toMatchObject(expected);
      expect(await client.readLive('s')).toMatchObject(expected);
    }
    answers = [json(200, { url: 'no address' })];
    expect(await client.upload('talk', new Uint8Array(1))).toMatchObject({ ok: false, error: { kind: 'unreachable' } });
  });

  it('rejects lists and key tests that another program answers', async () => {
    const client = new RollcallClient({ url, key: 'k' });
    for (const answer of [null, [], {}, { items: {}, from: '', to: '' }]) {
      answers = Array(3).fill(json(200, answer));
      for (const outcome of [await client.test(), await client.list(), await client.usage()])
        expect(outcome).toMatchObject({ ok: false, error: { kind: 'unexpected', status: 200 } });
    }
  });

  it('repeats a call with the same idempotency key when its connection broke', async () => {
    answers = [(r) => r.destroy(), json(200, { jobId: 'j', status: 'created' })];
    const created = await new RollcallClient({ url, key: 'k' }).diarize({ url: 'https://example.com/a.wav' });
    expect(created.ok).toBe(true);
    const keys = requests.map(({ headers }) => headers['idempotency-key']);
    expect(keys).toEqual([keys[0], keys[0]]);
    expect(keys[0]).toMatch(/^[0-9a-f-]{36}$/);
  });

  it('creates and reads live streams', async () => {
    const state = { id: 's/1', status: 'created', startedAt: null, completedAt: null, input: {} };
    answers = [json(200, { id: 's/1', url: 'ws://x/' }), json(200, state)];
    const client = new RollcallClient({ url, key: 'k' });
    expect(await client.createLive({ latency: 500 })).toEqual({ ok: true, value: { id: 's/1', url: 'ws://x/' } });
    expect(await client.readLive('s/1')).toEqual({ ok: true, value: state });
    expect(requests.map(({ method, path, body }) => [method, path, body])).toEqual([
      ['POST', '/v1/live', '{"latency":500}'],
      ['GET', '/v1/live/s%2F1', ''],
    ]);
  });

  it('accepts an address with /v1', async () => {
    answers = [json(200, { status: 'OK', message: 'good key' })];
    expect((await new RollcallClient({ url: `${url}/v1/`, key: 'k' }).test()).ok).toBe(true);
    expect(requests[0].path).toBe('/v1/test');
  });

  it('uploads a stream of known length in two steps, without the key at the signed address', async () => {
    answers = [json(201, { url: `${url}/signed` }), json(200, {})];
    const body = new Blob(['abc', 'def']).stream();
    const stored = await new RollcallClient({ url, key: 'k' }).upload('x/y', body, 6);
    expect(stored).toEqual({ ok: true, value: 'media://x/y' });
    expect(JSON.parse(requests[0].body)).toEqual({ url: 'media://x/y' });
    expect(requests[1]).toMatchObject({ method: 'PUT', path: '/signed', body: 'abcdef' });
    expect(requests[1].headers['content-length']).toBe('6');
    expect(requests[1].headers.authorization).toBeUndefined();
  });

  it('waits through running states and temporary faults', async () => {
    answers = [
      job('created'),
      json(503, { requestId: 'r', message: 'busy' }),
      (r) => r.destroy(),
      job('running'),
      job('succeeded'),
    ];
    const states: string[] = [];
    const client = new RollcallClient({ url, key: 'k' });
    const done = await client.wait('j', { pollMs: 1, onUpdate: ({ status }) => states.push(status) });
    expect(done).toMatchObject({ ok: true, value: { status: 'succeeded' } });
    expect(states).toEqual(['created', 'running', 'succeeded']);
  });

  it('measures `patienceMs` from the first failed poll, not from the last answer', async () => {
    const busy = json(503, { requestId: 'r', message: 'busy' });
    answers = [job('running'), busy, job('running'), busy, job('succeeded')];
    const client = new RollcallClient({ url, key: 'k' });
    const done = await client.wait('j', { pollMs: 150, patienceMs: 100 });
    expect(done).toMatchObject({ ok: true, value: { status: 'succeeded' } });
  });

  it('stops waiting at once on a permanent fault, and after `patienceMs` on a temporary one', async () => {
    answers = [json(404, { requestId: 'r', message: 'unknown' })];
    const client = new RollcallClient({ url, key: 'k' });
    expect(await client.wait('j', { pollMs: 1 })).toMatchObject({ ok: false, error: { kind: 'refused', status: 404 } });
    expect(requests).toHaveLength(1);
    const gaveUp = await client.wait('j', { pollMs: 10, patienceMs: 100 });
    expect(gaveUp).toMatchObject({ ok: false, error: { status: 500 } });
    expect(requests.length).toBeGreaterThan(3);
  });

  it('repeats a poll whose answer broke off, and waits for a slow answer', async () => {
    const fullBody = JSON.stringify({
      jobId: 'j',
      status: 'succeeded',
      output: { diarization: [], filler: 'é'.repeat(3000) },
    });
    const head = { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(fullBody) };
    const cut = (response: ServerResponse) => {
      response.writeHead(200, head);
      response.write(fullBody.slice(0, 100), () => response.destroy());
    };
    const slow = async (response: ServerResponse) => {
      response.writeHead(200, head);
      const bytes = Buffer.from(fullBody);
      for (let at = 0; at < bytes.length; at += 501) {
        response.write(bytes.subarray(at, at + 501));
        await new Promise((done) => setTimeout(done, 40));
      }
      response.end();
    };
    const client = new RollcallClient({ url, key: 'k', timeoutMs: 300 });
    answers = [cut, slow];
    const done = await client.wait('j', { pollMs: 1 });
    expect(done).toMatchObject({ ok: true, value: { output: { filler: 'é'.repeat(3000) } } });
    answers = [(response) => response.writeHead(200, head).write('{')];
    const lost = await client.retrieve('j');
    expect(lost).toMatchObject({
      ok: false,
      error: { kind: 'unreachable', message: expect.stringMatching(/broke off/) },
    });
  });

  it('repeats a call that the rate limit refused after its Retry-After', async () => {
    const limited = (seconds: number) => (response: ServerResponse) => {
      response.setHeader('Retry-After', String(seconds));
      json(429, { requestId: 'r', message: 'too many' })(response);
    };
    const waits: number[] = [];
    const client = new RollcallClient({ url, key: 'k', onRateLimit: (seconds) => waits.push(seconds) });
    answers = [limited(1), json(200, { jobId: 'j', status: 'created' })];
    const startedAt = Date.now();
    expect((await client.diarize({ url: 'https://example.com/a.wav' })).ok).toBe(true);
    expect(Date.now() - startedAt).toBeGreaterThanOrEqual(990);
    const keys = requests.map(({ headers }) => headers['idempotency-key']);
    expect(keys).toEqual([keys[0], keys[0]]);

    answers = [limited(0), job('running'), limited(0), job('succeeded')];
    expect(await client.wait('j', { pollMs: 1 })).toMatchObject({ ok: true, value: { status: 'succeeded' } });
    expect(waits).toEqual([1, 0, 0]);

    answers = Array.from({ length: 7 }, () => limited(0));
    expect(await client.test()).toMatchObject({ ok: false, error: { status: 429, retryAfterSeconds: 0 } });
    expect(answers).toHaveLength(1);
    answers = [limited(3600)];
    expect(await client.test()).toMatchObject({ ok: false, error: { status: 429, retryAfterSeconds: 3600 } });

    const overloaded = (response: ServerResponse) => {
      response.setHeader('Retry-After', '0');
      json(503, { requestId: 'r', message: 'too many live streams' })(response);
    };
    answers = [overloaded, json(200, { id: 's', url: 'ws://x' })];
    expect(await client.createLive()).toMatchObject({ ok: true });

    answers = [limited(100)];
    const stop = new AbortController();
    setTimeout(() => stop.abort(), 50);
    expect(await client.wait('j', { signal: stop.signal })).toMatchObject({ ok: false, error: { status: 429 } });
  });

  it('creates nothing when it is aborted during the wait for the rate limit', async () => {
    const limited = (response: ServerResponse) => {
      response.setHeader('Retry-After', '100');
      json(429, { requestId: 'r', message: 'too many' })(response);
    };
    const client = new RollcallClient({ url, key: 'k' });
    const audio = 'https://example.com/a.wav';
    const calls: ((signal: AbortSignal) => Promise<Outcome<unknown>>)[] = [
      (signal) => client.diarize({ url: audio }, undefined, signal),
      (signal) => client.voiceprint({ url: audio }, undefined, signal),
      (signal) => client.identify({ url: audio, voiceprints: [] }, undefined, signal),
      (signal) => client.createLive({}, signal),
      (signal) => client.upload('a', new Uint8Array(1), undefined, signal),
    ];
    for (const call of calls) {
      answers = [limited];
      const stop = new AbortController();
      setTimeout(() => stop.abort(), 50);
      expect(await call(stop.signal)).toMatchObject({ ok: false, error: { status: 429 } });
    }
    expect(requests).toHaveLength(calls.length);
  });

  it('works without AbortSignal.any, URL.canParse and crypto.randomUUID', async () => {
    vi.spyOn(AbortSignal, 'any').mockImplementation(throwMissing);
    vi.spyOn(URL, 'canParse').mockImplementation(throwMissing);
    vi.spyOn(crypto, 'randomUUID').mockImplementation(throwMissing);
    try {
      const client = new RollcallClient({ url, key: 'k' });
      const { signal } = new AbortController();
      answers = [json(200, { jobId: 'j', status: 'created' }), job('running'), (r) => r.destroy(), job('succeeded')];
      expect((await client.diarize({ url: 'https://example.com/a.wav' })).ok).toBe(true);
      expect(requests[0].headers['idempotency-key']).toMatch(
        /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
      );
      expect(await client.wait('j', { pollMs: 1, signal })).toMatchObject({ ok: true });
      const closed = await new RollcallClient({ url: 'http://127.0.0.1:1', key: 'k' }).test();
      expect(closed).toMatchObject({ ok: false, error: { kind: 'unreachable' } });
    } finally {
      vi.restoreAllMocks();
    }
  });

  it('repeats an upload that the rate limit refused, if the body can be sent again', async () => {
    const limited = (response: ServerResponse) => {
      response.setHeader('Retry-After', '0');
      json(429, { requestId: 'r', message: 'too many' })(response);
    };
    const client = new RollcallClient({ url, key: 'k' });
    answers = [json(201, { url: `${url}/signed` }), limited, json(200, {})];
    expect(await client.upload('x', new Uint8Array([97, 98]))).toEqual({ ok: true, value: 'media://x' });
    expect(requests.slice(1).map(({ path, body }) => [path, body])).toEqual([
      ['/signed', 'ab'],
      ['/signed', 'ab'],
    ]);
    answers = [json(201, { url: `${url}/signed` }), limited];
    const streamed = await client.upload('x', new Blob(['ab']).stream(), 2);
    expect(streamed).toMatchObject({ ok: false, error: { status: 429, retryAfterSeconds: 0 } });
  });

  it('stops waiting when the signal aborts', async () => {
    answers = [job('running'), job('running')];
    const stop = new AbortController();
    setTimeout(() => stop.abort(), 50);
    const client = new RollcallClient({ url, key: 'k' });
    const job1 = await client.wait('j', { pollMs: 60_000, signal: stop.signal });
    expect(job1).toMatchObject({ ok: true, value: { status: 'running' } });
  });

  it('returns the last state received when the signal aborts during a slow answer', async () => {
    answers = [job('running'), () => {}];
    const stop = new AbortController();
    setTimeout(() => stop.abort(), 300);
    const client = new RollcallClient({ url, key: 'k' });
    const waited = await client.wait('j', { pollMs: 1, signal: stop.signal });
    expect(waited).toMatchObject({ ok: true, value: { status: 'running' } });
  });

  it('reports that a proxy refused a recording because of its size', async () => {
    answers = [json(201, { url: `${url}/signed` }), (response) => response.writeHead(413).end('<html>')];
    const stored = await new RollcallClient({ url, key: 'k' }).upload('talk', new Uint8Array(1));
    expect(stored).toEqual({
      ok: false,
      error: {
        kind: 'unexpected',
        status: 413,
        message: `${url} answered 413: a proxy in front of the service refuses a body of this size`,
      },
    });
  });

  it('reports refusals, faulty fields, missing answers and other programs as different errors', async () => {
    const faults = [{ field: 'url', message: 'is needed' }];
    answers = [
      json(400, { message: 'Invalid request', errors: faults }),
      json(402, { requestId: 'r1', message: 'no credit' }),
      (response) => response.writeHead(502).end('<html>'),
      (response) => response.end('<html>'),
    ];
    const client = new RollcallClient({ url, key: 'k' });
    const call = () => client.diarize({ url: 'x' });
    expect(await call()).toEqual({
      ok: false,
      error: { kind: 'refused', status: 400, message: 'Invalid request', fields: faults },
    });
    expect(await call()).toMatchObject({ ok: false, error: { kind: 'refused', status: 402, requestId: 'r1' } });
    expect(await call()).toMatchObject({ ok: false, error: { kind: 'unexpected', status: 502 } });
    expect(await call()).toMatchObject({ ok: false, error: { kind: 'unexpected', status: 200 } });
    const closed = await new RollcallClient({ url: 'http://127.0.0.1:1', key: 'k' }).test();
    expect(closed).toMatchObject({ ok: false, error: { kind: 'unreachable' } });
    const slow = new RollcallClient({ url, key: 'k', timeoutMs: 50 });
    answers = [() => {}];
    expect(await slow.test()).toMatchObject({
      error: { kind: 'unreachable', message: expect.stringContaining('in time') },
    });
  });
});
