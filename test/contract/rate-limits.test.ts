import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { changeAccount } from '../../client/account-settings.ts';
import { type Answer, type ContractService, startContractService, text, UUID } from './service.ts';

let service: ContractService;
beforeAll(async () => {
  service = await startContractService();
});
afterAll(() => service?.stop());

const SOURCE = 'http://127.0.0.1:9/recording.wav';
let accounts = 0;

/** A new account with default or given limits, and a function that calls with its key. */
async function newAccount(limits: { postLimit?: number; getLimit?: number } = {}) {
  const name = `limited-${accounts++}`;
  const { token, accountId } = await service.newKey({ account: name, defaultLimits: true });
  await changeAccount(service.run, name, limits);
  const call = (method: string, path: string, body?: object, headers?: Record<string, string>) =>
    service.call(method, path, { key: token, body, headers });
  return { name, token, accountId, call };
}

const limitOf = ({ headers }: Answer) => ({
  limit: Number(headers.get('X-RateLimit-Limit')),
  remaining: Number(headers.get('X-RateLimit-Remaining')),
});

function expectRefused(answer: Answer): void {
  expect(answer.status).toBe(429);
  expect(answer.body).toEqual({ requestId: expect.stringMatching(UUID), message: expect.stringMatching(/\w/) });
  const retryAfter = Number(answer.headers.get('Retry-After'));
  expect(retryAfter).toBeGreaterThan(0);
  expect(retryAfter).toBeLessThanOrEqual(60);
  expect(answer.headers.get('X-RateLimit-Reset')).toBe(String(retryAfter));
  expect(answer.headers.get('X-RateLimit-Remaining')).toBe('0');
}

describe('200 concurrent calls with one Idempotency-Key', () => {
  const burst = async (account: Awaited<ReturnType<typeof newAccount>>) => {
    const headers = { 'Idempotency-Key': 'one' };
    const answers = await Promise.all(
      Array.from({ length: 200 }, () => account.call('POST', '/v1/diarize', { url: SOURCE }, headers)),
    );
    const [{ jobs }] = await service.run('SELECT COUNT(*) AS jobs FROM jobs WHERE account_id = ?', account.accountId);
    return { answers, jobs };
  };
  const jobIds = (answers: Answer[]) => new Set(answers.map(({ body }) => body.jobId));

  it('create one job, and exactly 100 are refused, at the default limits', async () => {
    const { answers, jobs } = await burst(await newAccount());
    const served = answers.filter(({ status }) => status === 200);
    const refused = answers.filter(({ status }) => status === 429);
    expect([served.length, refused.length]).toEqual([100, 100]);
    for (const answer of refused) expectRefused(answer);
    expect(jobIds(served).size).toBe(1);
    expect(jobs).toBe(1);
    const remaining = served.map((answer) => limitOf(answer).remaining).sort((a, b) => a - b);
    expect(remaining).toEqual(Array.from({ length: 100 }, (_, index) => index));
  });

  it('all return the same job at a raised limit', async () => {
    const { answers, jobs } = await burst(await newAccount({ postLimit: 200 }));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(200);
    expect(jobIds(answers).size).toBe(1);
    expect(jobs).toBe(1);
  });
});

describe('rate limit headers', () => {
  it('name the limit, the remaining calls and the end of the window', async () => {
    const { call, token } = await newAccount();
    const first = await call('GET', '/v1/test');
    expect(limitOf(first)).toEqual({ limit: 300, remaining: 299 });
    const reset = Number(first.headers.get('X-RateLimit-Reset'));
    expect(reset).toBeGreaterThan(55);
    expect(reset).toBeLessThanOrEqual(60);
    expect(first.headers.get('Retry-After')).toBeNull();

    expect(limitOf(await call('POST', '/v1/diarize', { url: SOURCE }))).toEqual({ limit: 100, remaining: 99 });
    expect(limitOf(await call('POST', '/v1/diarize', {}))).toEqual({ limit: 100, remaining: 98 });
    const headers = { 'Content-Type': 'audio/wav' };
    const notJson = await service.call('POST', '/v1/diarize', { key: token, body: text('{'), headers });
    expect([notJson.status, limitOf(notJson).remaining]).toEqual([415, 97]);
    expect(limitOf(await call('GET', '/v1/jobs/unknown'))).toEqual({ limit: 300, remaining: 299 });
    for (const [method, path] of [
      ['GET', '/v1/nothing-here'],
      ['PUT', '/v1/diarize'],
      ['OPTIONS', '/v1/test'],
    ]) {
      const answer = await call(method, path);
      expect(limitOf(answer).limit).toBeGreaterThan(0);
      expect(Number(answer.headers.get('X-RateLimit-Reset'))).toBeGreaterThan(0);
    }
    const stranger = await service.call('GET', '/v1/test', { key: 'bad' });
    expect([stranger.status, stranger.headers.get('X-RateLimit-Limit')]).toEqual([401, null]);
  });

  it('count calls with a key that lacks the scope', async () => {
    const { name, call } = await newAccount({ postLimit: 2 });
    const { token } = await service.newKey({ account: name, defaultLimits: true, scopes: [] });
    await changeAccount(service.run, name, { postLimit: 2 });
    const refused = await service.call('POST', '/v1/diarize', { key: token, body: { url: SOURCE } });
    expect([refused.status, limitOf(refused).remaining]).toEqual([403, 1]);
    expect((await call('POST', '/v1/diarize', { url: SOURCE })).status).toBe(200);
    expectRefused(await call('POST', '/v1/diarize', { url: SOURCE }));
  });
});

describe('rate limit windows', () => {
  it('are separate for each endpoint and account; HEAD and trailing slashes share one', async () => {
    const { call } = await newAccount({ postLimit: 1, getLimit: 3 });
    expect((await call('POST', '/v1/diarize', { url: SOURCE })).status).toBe(200);
    expectRefused(await call('POST', '/v1/diarize', { url: SOURCE }));
    expect((await call('POST', '/v1/media/input', { url: 'media://x' })).status).toBe(201);
    expectRefused(await call('POST', '/v1/media/input/', { url: 'media://x' }));
    expect(limitOf(await call('GET', '/v1/jobs/one')).remaining).toBe(2);
    expect(limitOf(await call('HEAD', '/v1/jobs/two')).remaining).toBe(1);
    expect(limitOf(await call('GET', '/v1/jobs/three/')).remaining).toBe(0);
    expect(limitOf(await call('GET', '/v1/test')).remaining).toBe(2);
    const other = await newAccount({ postLimit: 1 });
    expect((await other.call('POST', '/v1/diarize', { url: SOURCE })).status).toBe(200);
  });

  it('are checked last: other errors of the request come first', async () => {
    const { name, call, token } = await newAccount({ postLimit: 1, getLimit: 2 });
    const { body: job } = await call('POST', '/v1/diarize', { url: SOURCE });
    expectRefused(await call('POST', '/v1/diarize', { url: SOURCE }));
    expect((await call('POST', '/v1/diarize', { url: '' })).status).toBe(400);
    const headers = { 'Content-Type': 'audio/wav' };
    expect((await service.call('POST', '/v1/diarize', { key: token, body: text('{'), headers })).status).toBe(415);
    const large = new Uint8Array(13 * 1024 * 1024).fill(0x20);
    expect((await service.call('POST', '/v1/diarize', { key: token, body: large })).status).toBe(413);
    await changeAccount(service.run, name, { creditSeconds: 0 });
    expect((await call('POST', '/v1/diarize', { url: SOURCE })).status).toBe(402);

    const path = `/v1/jobs/${job.jobId}`;
    expect([(await call('GET', path)).status, (await call('GET', path)).status]).toEqual([200, 200]);
    expectRefused(await call('GET', path));
    expect((await call('GET', '/v1/jobs/unknown')).status).toBe(404);
  });

  it('create no job for a refused call', async () => {
    const { call, accountId } = await newAccount({ postLimit: 1 });
    for (const status of [200, 429, 429]) {
      expect((await call('POST', '/v1/diarize', { url: SOURCE })).status).toBe(status);
    }
    const [{ jobs }] = await service.run('SELECT COUNT(*) AS jobs FROM jobs WHERE account_id = ?', accountId);
    expect(jobs).toBe(1);
  });

  it('count uploads for the account of the upload address', async () => {
    const { name, call, accountId } = await newAccount({ postLimit: 3 });
    const address = async (recording: string) =>
      (await call('POST', '/v1/media/input', { url: `media://${recording}` })).body.url as string;
    const [url, second] = [await address('one'), await address('two')];
    const put = (to: string, body = 'x', headers?: Record<string, string>) =>
      service.call('PUT', to, { key: null, body: text(body), headers });
    const stored = async () => {
      const [row] = await service.run('SELECT COUNT(*) AS rows FROM media WHERE account_id = ?', accountId);
      const { objects } = await service.bucket.list({ prefix: `media/${accountId}/` });
      return [row.rows, objects.length];
    };

    const forged = await put(`${url}x`);
    expect([forged.status, forged.headers.get('X-RateLimit-Limit')]).toEqual([401, null]);
    const first = await put(url);
    expect([first.status, limitOf(first)]).toEqual([200, { limit: 3, remaining: 2 }]);
    // Calls that are refused for another reason count too.
    const empty = await put(url, '');
    expect([empty.status, limitOf(empty)]).toEqual([400, { limit: 3, remaining: 1 }]);
    expect(limitOf(await put(second))).toEqual({ limit: 3, remaining: 0 });
    for (const to of [url, second, `${url}/`]) expectRefused(await put(to));
    expect(await stored()).toEqual([2, 2]);

    expect((await put(url, '')).status).toBe(400);
    expect((await put(url, 'x', { 'Content-Range': 'bytes 0-0/2' })).status).toBe(400);
    expect((await put(`${url}x`)).status).toBe(401);
    const other = await newAccount({ postLimit: 1 });
    const { body } = await other.call('POST', '/v1/media/input', { url: 'media://one' });
    expect((await put(body.url)).status).toBe(200);
    await changeAccount(service.run, name, { postLimit: null });
    expect([(await put(url)).status, await stored()]).toEqual([200, [3, 3]]);
  });

  it('apply a new limit immediately', async () => {
    const { name, call } = await newAccount({ postLimit: 1 });
    await call('POST', '/v1/diarize', { url: SOURCE });
    expectRefused(await call('POST', '/v1/diarize', { url: SOURCE }));
    await changeAccount(service.run, name, { postLimit: 3 });
    expect((await call('POST', '/v1/diarize', { url: SOURCE })).status).toBe(200);
    await changeAccount(service.run, name, { postLimit: null });
    expect(limitOf(await call('POST', '/v1/diarize', { url: SOURCE }))).toEqual({ limit: 100, remaining: 96 });
  });
});
