import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startServer, type TestServer } from '../helpers/http-server.ts';
import { wav16 } from '../helpers/wav.ts';
import { type ContractService, startContractService } from './service.ts';

let service: ContractService;
let server: TestServer;
const delivered: string[] = [];
const SILENCE = wav16(new Float32Array(16_000), 16_000);
/** Ten minutes: two shards. */
const LONG = wav16(new Float32Array(9_600_000), 16_000);

async function drip(response: ServerResponse): Promise<void> {
  while (!response.destroyed) {
    response.write(new Uint8Array(500));
    await new Promise((done) => setTimeout(done, 100));
  }
}

beforeAll(async () => {
  server = await startServer(async (request, response) => {
    if (request.url?.startsWith('/drip')) await drip(response);
    else if (request.url?.startsWith('/stall')) {
      response.writeHead(200, { 'Content-Length': LONG.length, ETag: '"stall"' });
      response.write(LONG.subarray(0, 1 << 20));
    } else if (request.url?.startsWith('/broken')) {
      response.writeHead(503).end();
    } else if (request.url?.startsWith('/ok')) {
      delivered.push(request.url);
      response.writeHead(204).end();
    }
  });
  service = await startContractService();
});
afterAll(async () => {
  await service?.stop();
  await server?.close();
});

const post = async (body: object): Promise<string> => {
  const { status, body: job } = await service.call('POST', '/v1/diarize', { body });
  expect(status).toBe(200);
  return job.jobId;
};
/** A source whose job fails when it is read, without inference. */
const NOT_AUDIO = 'data:,this%20is%20not%20audio';
const TIMEOUT_MS = 12_000;

async function waitFor(condition: () => Promise<boolean> | boolean): Promise<boolean> {
  for (const until = Date.now() + TIMEOUT_MS; Date.now() < until; ) {
    if (await condition()) return true;
    await new Promise((done) => setTimeout(done, 50));
  }
  return false;
}
const hasEnded = (jobId: string) =>
  waitFor(async () => (await service.call('GET', `/v1/jobs/${jobId}`)).body.status === 'failed');

describe('slow servers', () => {
  it('that drip or never answer do not block other jobs', async () => {
    const slow: string[] = [];
    for (const path of ['/drip/1', '/hang/1', '/drip/2', '/hang/2', '/drip/3', '/hang/3', '/drip/4', '/hang/4']) {
      slow.push(await post({ url: server.origin + path }));
    }
    expect(await hasEnded(await post({ url: NOT_AUDIO }))).toBe(true);
    expect(await hasEnded(await post({ url: NOT_AUDIO }))).toBe(true);
    for (const jobId of slow) await service.call('POST', `/v1/jobs/${jobId}/cancel`);
  });

  it('that stall inside a recording do not block the analysis of other jobs', async () => {
    const slow: string[] = [];
    for (const path of ['/stall/1', '/stall/2', '/stall/3']) slow.push(await post({ url: server.origin + path }));
    const stalls = () => server.requests.filter(({ path }) => path.startsWith('/stall')).length >= slow.length;
    expect(await waitFor(stalls)).toBe(true);
    expect(
      await hasEnded(await post({ url: `data:audio/wav;base64,${Buffer.from(SILENCE).toString('base64')}` })),
    ).toBe(true);
    for (const jobId of slow) await service.call('POST', `/v1/jobs/${jobId}/cancel`);
  });

  it('that never answer a webhook do not block other webhooks', async () => {
    for (let index = 0; index < 3; index++) await post({ url: NOT_AUDIO, webhook: `${server.origin}/hang/${index}` });
    await new Promise((done) => setTimeout(done, 500));
    await post({ url: NOT_AUDIO, webhook: `${server.origin}/ok/1` });
    expect(await waitFor(() => delivered.includes('/ok/1'))).toBe(true);
  });

  it('fail the job with source_unreachable after retries', async () => {
    const startedAt = Date.now();
    const jobId = await post({ url: 'http://127.0.0.1:9/nobody.wav' });
    const ended = await waitFor(
      async () => (await service.call('GET', `/v1/jobs/${jobId}`)).body.status === 'failed',
    ).then((isDone) => isDone || hasEnded(jobId).then((later) => later || hasEnded(jobId)));
    expect(ended).toBe(true);
    expect(Date.now() - startedAt).toBeGreaterThan(3000);
    const { body } = await service.call('GET', `/v1/jobs/${jobId}`);
    expect(body.output.code).toBe('source_unreachable');
  });
});

it('X-Job-Attempt has the number of the next attempt to fetch the source', async () => {
  const jobId = await post({ url: `${server.origin}/broken` });
  const read = () => service.call('GET', `/v1/jobs/${jobId}`);
  await expect.poll(async () => (await read()).headers.get('X-Job-Attempt'), { timeout: 30_000 }).toBe('2/5');
  await service.call('POST', `/v1/jobs/${jobId}/cancel`);
  expect((await read()).headers.get('X-Job-Attempt')).toBeNull();
});
