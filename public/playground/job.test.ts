import type { IncomingMessage, ServerResponse } from 'node:http';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { RollcallClient } from '../../client/sdk/client.ts';
import { startServer, type TestServer } from '../../test/helpers/http-server.ts';
import { runJob } from './job.ts';

const job = (status: string, output?: object) => ({ jobId: 'j', status, createdAt: '', updatedAt: '', output });
const ADDRESS = { kind: 'address', url: 'https://example.com/a.mp3' } as const;
/** A closed port, which replaces a host that the page's content security policy forbids. */
const CLOSED = 'http://127.0.0.1:1';

let server: TestServer;
let origin: string;
let client: RollcallClient;
let answers: Record<string, () => Response> = {};
let calls: { readonly name: string; readonly body?: unknown }[] = [];

/** Sets the answers by method and path; any other call gets no answer. */
function service(by: Record<string, () => Response>): typeof calls {
  answers = by;
  calls = [];
  return calls;
}

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const name = `${request.method} ${request.url}`;
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const isJson = request.headers['content-type'] === 'application/json';
  calls.push({ name, ...(isJson && { body: JSON.parse(Buffer.concat(chunks).toString()) as unknown }) });
  const prepared = answers[name]?.();
  if (prepared === undefined) return void request.socket.destroy();
  response.statusCode = prepared.status;
  response.setHeaders(prepared.headers as Parameters<typeof response.setHeaders>[0]);
  response.end(await prepared.text());
}

beforeAll(async () => {
  server = await startServer((request, response) => void answer(request, response).catch(() => response.destroy()));
  origin = server.origin;
  client = new RollcallClient({ url: origin, key: 'k' });
});
afterAll(() => server.close());
afterEach(() => vi.unstubAllGlobals());

const created = () => Response.json({ jobId: 'j', status: 'created' });
const run = (source: Parameters<typeof runJob>[1]['source'], signal = new AbortController().signal) => {
  const messages: [string, number?][] = [];
  const showState = (...state: [string, number?]) => void messages.push(state);
  const created: string[] = [];
  const onCreated = (id: string) => void created.push(id);
  const request = { source, model: 'precision-2', numSpeakers: 2 } as const;
  return runJob(client, request, { showState, onCreated, signal }).then((end) => ({ end, messages, created }));
};

describe('a job of the playground', () => {
  it('runs from an address to its end and shows its progress', async () => {
    const states = [job('created'), job('running'), job('succeeded', { diarization: [] })];
    const calls = service({
      'POST /v1/diarize': created,
      'GET /v1/jobs/j': () => Response.json(states.shift(), { headers: { 'X-Job-Progress': '0.5' } }),
    });
    const { end, messages, created: ids } = await run(ADDRESS);
    expect(ids).toEqual(['j']);
    expect(end).toMatchObject({ ok: true, job: { status: 'succeeded' } });
    expect(calls[0].body).toEqual({
      url: ADDRESS.url,
      model: 'precision-2',
      numSpeakers: 2,
      turnLevelConfidence: true,
    });
    expect(messages.map(([text]) => text)).toEqual(['Starting …', 'The job is queued …', 'Analysing … 50 %', 'Done.']);
  });

  it('shows the number of the attempt to fetch the recording', async () => {
    const states = ['running', 'succeeded'];
    service({
      'POST /v1/diarize': created,
      'GET /v1/jobs/j': () => {
        const headers = { 'X-Job-Progress': '0', ...(states.length === 2 && { 'X-Job-Attempt': '2/5' }) };
        return Response.json(job(states.shift()!, { diarization: [] }), { headers });
      },
    });
    const { messages } = await run(ADDRESS);
    expect(messages.map(([text]) => text)).toEqual([
      'Starting …',
      'Fetching the recording (attempt 2 of 5) …',
      'Done.',
    ]);
  });

  it('reports a lost connection and continues after it', async () => {
    let polls = 0;
    service({
      'POST /v1/diarize': created,
      'GET /v1/jobs/j': () => {
        polls++;
        // The connection ends without an answer; the client repeats each call once, immediately.
        if (polls > 1 && polls < 6) throw new Error('lost');
        return Response.json(job(polls === 1 ? 'running' : 'succeeded', { diarization: [] }));
      },
    });
    const { end, messages } = await run(ADDRESS);
    expect(messages.map(([text]) => text)).toContain('Connection lost, retrying …');
    expect(end.ok).toBe(true);
  });

  it('sends a small file in the request if the page cannot reach the host of uploads', async () => {
    vi.stubGlobal('FileReader', FakeFileReader);
    const calls = service({
      'POST /v1/media/input': () => Response.json({ url: `${CLOSED}/x` }, { status: 201 }),
      'POST /v1/diarize': created,
      'GET /v1/jobs/j': () => Response.json(job('succeeded', { diarization: [] })),
    });
    expect((await run({ kind: 'file', file: new File(['abc'], 'a') })).end.ok).toBe(true);
    expect(calls.find(({ name }) => name === 'POST /v1/diarize')!.body).toMatchObject({
      url: 'data:application/octet-stream;base64,YWJj',
    });
    const large = new File([new Uint8Array(9 * 1024 * 1024)], 'a');
    const { end } = await run({ kind: 'file', file: large });
    expect(!end.ok && end.problem?.message).toMatch(/8 MiB/);
  });

  it('reports a network fault if uploads go to the host of the page', async () => {
    service({ 'POST /v1/media/input': () => Response.json({ url: `${origin}/v1/media/upload/x` }, { status: 201 }) });
    const { end } = await run({ kind: 'file', file: new File([new Uint8Array(9 * 1024 * 1024)], 'a') });
    expect(!end.ok && end.problem?.message).toMatch(/^http:\/\/127\.0\.0\.1:\d+ cannot be reached: [^.]*\.$/);
    service({});
    const unreachable = await run({ kind: 'file', file: new File(['abc'], 'a') });
    expect(!unreachable.end.ok && unreachable.end.problem?.message).not.toMatch(/MiB/);
  });

  it('reports a file that was changed after it was chosen', async () => {
    service({ 'POST /v1/media/input': () => Response.json({ url: `${origin}/v1/media/upload/x` }, { status: 201 }) });
    const file = new File(['abc'], 'a');
    const changed = async () => Promise.reject(new DOMException('', 'NotReadableError'));
    Object.defineProperty(file, 'slice', { value: () => ({ arrayBuffer: changed }) });
    const { end } = await run({ kind: 'file', file });
    expect(!end.ok && end.problem?.message).toMatch(/changed or moved/);
  });

  it('shows all faults of a request and advice about a wrong key', async () => {
    const errors = [{ field: 'url', message: 'must not be empty' }];
    service({ 'POST /v1/diarize': () => Response.json({ message: 'Invalid request', errors }, { status: 400 }) });
    expect((await run(ADDRESS)).end).toEqual({
      ok: false,
      problem: { message: 'Invalid request.', details: ['url must not be empty.'] },
    });
    const refusal = { message: 'The API key is not valid.', requestId: 'r' };
    service({ 'POST /v1/diarize': () => Response.json(refusal, { status: 401 }) });
    expect((await run(ADDRESS)).end).toEqual({
      ok: false,
      problem: {
        message: refusal.message,
        isKeyFault: true,
        details: [expect.stringContaining('npm run key'), 'Request r'],
      },
    });
  });

  it('shows the reason why a job failed', async () => {
    const output = { error: 'The recording has no speech.', code: 'no_speech' };
    service({ 'POST /v1/diarize': created, 'GET /v1/jobs/j': () => Response.json(job('failed', output)) });
    expect((await run(ADDRESS)).end).toEqual({
      ok: false,
      problem: { message: output.error, details: ['Code no_speech', 'Job j'] },
    });
  });

  it('is reported as possibly continuing after a fault of the service or an unexpected answer', async () => {
    const busy = () => Response.json({ message: 'Busy.', requestId: 'r' }, { status: 503 });
    const page = () => new Response('<html>', { status: 502 });
    for (const answer of [busy, page]) {
      service({ 'POST /v1/diarize': created, 'GET /v1/jobs/j': answer });
      vi.spyOn(client, 'wait').mockImplementationOnce((id) => client.retrieve(id)); // without retries
      const { end } = await run(ADDRESS);
      expect(end).toMatchObject({ ok: false, isLost: true });
      expect(!end.ok && end.problem?.details.at(-1)).toMatch(/reload this page/);
    }
    const gone = () => Response.json({ message: 'Not found.', requestId: 'r' }, { status: 404 });
    service({ 'POST /v1/diarize': created, 'GET /v1/jobs/j': gone });
    expect((await run(ADDRESS)).end).not.toHaveProperty('isLost');
  });

  it('is reported as possibly continuing after its key was revoked', async () => {
    const refused = () => Response.json({ message: 'The API key is revoked.', requestId: 'r' }, { status: 401 });
    service({ 'POST /v1/diarize': created, 'GET /v1/jobs/j': refused });
    const { end } = await run(ADDRESS);
    expect(end).toMatchObject({
      ok: false,
      isLost: true,
      problem: { message: 'The API key is revoked.', isKeyFault: true },
    });
    expect(!end.ok && end.problem?.details.at(-1)).toMatch(/may continue; .* GET \/v1\/jobs\/j\.$/);
  });

  it('reports an expired result', async () => {
    service({ 'POST /v1/diarize': created, 'GET /v1/jobs/j': () => Response.json(job('succeeded')) });
    expect((await run(ADDRESS)).end).toEqual({
      ok: false,
      problem: { message: expect.stringMatching(/24 hours/), details: ['Job j'] },
    });
  });

  it('is not created when it is aborted during the wait for the rate limit', async () => {
    const stop = new AbortController();
    const calls = service({
      'POST /v1/diarize': () => {
        setTimeout(() => stop.abort(), 20);
        const headers = { 'Retry-After': '60' };
        return Response.json({ message: 'Too many requests.', requestId: 'r' }, { status: 429, headers });
      },
    });
    expect((await run(ADDRESS, stop.signal)).end).toEqual({ ok: false });
    expect(calls).toHaveLength(1);
  });

  it('is not created when it is aborted during the upload', async () => {
    const stop = new AbortController();
    const calls = service({
      'POST /v1/media/input': () => {
        stop.abort();
        return Response.json({ url: `${origin}/v1/media/upload/x` }, { status: 201 });
      },
    });
    const { end, created: ids } = await run({ kind: 'file', file: new File(['abc'], 'a') }, stop.signal);
    expect([end, ids]).toEqual([{ ok: false }, []]);
    expect(calls.map(({ name }) => name)).not.toContain('POST /v1/diarize');
  });

  it('is canceled by an abort', async () => {
    const stop = new AbortController();
    const calls = service({
      'POST /v1/diarize': created,
      'GET /v1/jobs/j': () => {
        stop.abort();
        return Response.json(job('running'));
      },
      'POST /v1/jobs/j/cancel': () => Response.json(job('canceled')),
    });
    expect((await run(ADDRESS, stop.signal)).end).toEqual({ ok: false });
    expect(calls.at(-1)!.name).toBe('POST /v1/jobs/j/cancel');
  });

  it('reports a failed cancellation, and shows the result of a job that had succeeded', async () => {
    const aborted = async (cancel?: () => Response) => {
      const stop = new AbortController();
      service({
        'POST /v1/diarize': created,
        'GET /v1/jobs/j': () => {
          stop.abort();
          return Response.json(job('running'));
        },
        ...(cancel && { 'POST /v1/jobs/j/cancel': cancel }),
      });
      return (await run(ADDRESS, stop.signal)).end;
    };
    const details = ['Job j', expect.stringContaining('reload this page')];
    expect(await aborted()).toMatchObject({
      ok: false,
      isLost: true,
      problem: { message: expect.stringMatching(/could not be canceled/), details },
    });
    expect(await aborted(() => Response.json(job('succeeded', { diarization: [] })))).toMatchObject({ ok: true });
    expect(await aborted(() => Response.json({ message: 'Not found.' }, { status: 404 }))).toEqual({ ok: false });
  });
});

/** The used part of the browser's FileReader, which Node does not have. */
class FakeFileReader {
  result: string | null = null;
  onload: () => void = () => undefined;
  async readAsDataURL(file: Blob): Promise<void> {
    const text = Buffer.from(await file.arrayBuffer()).toString('base64');
    this.result = `data:application/octet-stream;base64,${text}`;
    this.onload();
  }
}
