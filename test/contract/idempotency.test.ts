import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CallOptions, type ContractService, faultyFields, startContractService } from './service.ts';

let service: ContractService;
beforeAll(async () => {
  service = await startContractService();
});
afterAll(() => service?.stop());

/** No server listens on this port: the job fails after the assertions of these tests. */
const SOURCE = 'http://127.0.0.1:9/recording.wav';
const post = (body: CallOptions['body'], options: CallOptions = {}) =>
  service.call('POST', '/v1/diarize', { body, ...options });

describe('Idempotency-Key', () => {
  const withKey = (key: string, body: CallOptions['body'], options: CallOptions = {}) =>
    post(body, { headers: { 'Idempotency-Key': key }, ...options });

  it('returns the same job for an equal request with other field order and ignored fields', async () => {
    const first = await withKey('order-1', { url: SOURCE, exclusive: true });
    const again = await withKey('order-1', { exclusive: true, url: SOURCE, model: null, unknown: 1 });
    expect(first.status).toBe(200);
    expect(again.status).toBe(200);
    expect(again.body.jobId).toBe(first.body.jobId);
  });

  it('creates one job for concurrent requests', async () => {
    const answers = await Promise.all(Array.from({ length: 8 }, () => withKey('race', { url: SOURCE })));
    expect(new Set(answers.map(({ body }) => body.jobId)).size).toBe(1);
  });

  it('answers 409 for another body', async () => {
    await withKey('order-2', { url: SOURCE });
    const answer = await withKey('order-2', { url: SOURCE, exclusive: true });
    expect(answer.status).toBe(409);
    expect(answer.body).toEqual({ requestId: answer.headers.get('X-Request-Id'), message: expect.any(String) });
  });

  it('is separate for each account', async () => {
    const other = await service.newKey({ account: 'another' });
    const first = await withKey('shared', { url: SOURCE });
    const second = await withKey('shared', { url: SOURCE, exclusive: true }, { key: other.token });
    expect(second.status).toBe(200);
    expect(second.body.jobId).not.toBe(first.body.jobId);
  });

  it('must be 1 to 255 printable characters', async () => {
    expect((await withKey('k'.repeat(255), { url: SOURCE })).status).toBe(200);
    const answer = await withKey('k'.repeat(256), { url: SOURCE, model: 'none' });
    expect(faultyFields(answer)).toEqual(['model', 'Idempotency-Key']);
    expect(faultyFields(await withKey('a\u00e9', { url: SOURCE }))).toEqual(['Idempotency-Key']);
  });

  it('returns its job, or 409 for another body, also without remaining credit', async () => {
    const { accountId, token: key } = await service.newKey({ account: 'spent', creditSeconds: 20 });
    const headers = { 'Idempotency-Key': 'lost answer' };
    const again = (body: object) => service.call('POST', '/v1/diarize', { key, headers, body });
    const first = await again({ url: SOURCE });
    expect(first.status).toBe(200);
    await service.run('UPDATE accounts SET credit_seconds = 0 WHERE id = ?', accountId);
    const second = await again({ url: SOURCE });
    expect([second.status, second.body.jobId]).toEqual([200, first.body.jobId]);
    expect((await again({ url: SOURCE, exclusive: true })).status).toBe(409);
    expect((await service.call('POST', '/v1/diarize', { key, body: { url: SOURCE } })).status).toBe(402);
  });
});
