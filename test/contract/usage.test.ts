import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { usageSchema } from '../../src/contract/account.ts';
import { type ContractService, faultyFields, startContractService } from './service.ts';

let service: ContractService;
beforeAll(async () => {
  service = await startContractService();
});
afterAll(() => service?.stop());

const DAY_MS = 24 * 3600 * 1000;
const dayOf = (time: number) => new Date(time).toISOString().slice(0, 10);

/** Inserts a usage record, as a job that ended at `at` would. */
async function insertUsage(accountId: string, kind: string, billedSeconds: number, at: string | number): Promise<void> {
  await service.run(
    'INSERT INTO usage_records (job_id, account_id, kind, billed_seconds, created_at) VALUES (?, ?, ?, ?, ?)',
    randomUUID(),
    accountId,
    kind,
    billedSeconds,
    typeof at === 'number' ? at : Date.parse(at),
  );
}

async function waitForEnd(jobId: string, key: string) {
  for (;;) {
    const { body } = await service.call('GET', `/v1/jobs/${jobId}`, { key });
    if (['succeeded', 'failed', 'canceled'].includes(body.status)) return body;
    await new Promise((wake) => setTimeout(wake, 100));
  }
}

describe('GET /v1/usage', () => {
  it('sums billed seconds of this account by UTC day and kind, with totals', async () => {
    const { accountId, token: key } = await service.newKey({ account: 'billed' });
    const { accountId: other } = await service.newKey({ account: 'neighbour' });
    await insertUsage(accountId, 'diarize', 100.25, '2025-05-01T00:00:00Z');
    await insertUsage(accountId, 'diarize', 20, '2025-05-01T23:59:59.999Z');
    await insertUsage(accountId, 'identify', 30.5, '2025-05-01T12:00:00Z');
    await insertUsage(accountId, 'voiceprint', 0, '2025-05-02T00:00:00Z');
    await insertUsage(accountId, 'live', 60, '2025-05-02T01:00:00Z');
    await insertUsage(accountId, 'diarize', 1000, '2025-04-30T23:59:59.999Z');
    await insertUsage(accountId, 'diarize', 1000, '2025-05-03T00:00:00Z');
    await insertUsage(other, 'diarize', 1000, '2025-05-01T00:00:00Z');

    const answer = await service.call('GET', '/v1/usage?from=2025-05-01&to=2025-05-02', { key });
    expect(answer.status).toBe(200);
    expect(answer.body).toEqual({
      from: '2025-05-01T00:00:00.000Z',
      to: '2025-05-03T00:00:00.000Z',
      totals: { billedSeconds: 210.75, jobs: 5, voiceprints: 1 },
      days: [
        { date: '2025-05-01', kind: 'diarize', billedSeconds: 120.25, jobs: 2, voiceprints: 0 },
        { date: '2025-05-01', kind: 'identify', billedSeconds: 30.5, jobs: 1, voiceprints: 0 },
        { date: '2025-05-02', kind: 'live', billedSeconds: 60, jobs: 1, voiceprints: 0 },
        { date: '2025-05-02', kind: 'voiceprint', billedSeconds: 0, jobs: 1, voiceprints: 1 },
      ],
    });
    const half = '/v1/usage?from=2025-05-01T12:00:00Z&to=2025-05-01T23:59:59.999Z';
    expect((await service.call('GET', half, { key })).body.totals).toMatchObject({ billedSeconds: 30.5, jobs: 1 });
  });

  it('covers the last 30 days by default', async () => {
    const { accountId, token: key } = await service.newKey({ account: 'recent' });
    const now = Date.now();
    await insertUsage(accountId, 'diarize', 20, now - 29 * DAY_MS);
    await insertUsage(accountId, 'diarize', 1000, now - 31 * DAY_MS);
    const { body } = await service.call('GET', '/v1/usage', { key });
    expect(body.days).toEqual([
      { date: dayOf(now - 29 * DAY_MS), kind: 'diarize', billedSeconds: 20, jobs: 1, voiceprints: 0 },
    ]);
    expect(Date.parse(body.to) - Date.parse(body.from)).toBe(30 * DAY_MS);
    expect(Math.abs(Date.parse(body.to) - now)).toBeLessThan(60_000);
  });

  it('returns empty days and zero totals for an account without jobs', async () => {
    const { token: key } = await service.newKey({ account: 'idle' });
    const { body } = await service.call('GET', '/v1/usage', { key });
    expect(usageSchema.safeParse(body).success).toBe(true);
    expect([body.days, body.totals]).toEqual([[], { billedSeconds: 0, jobs: 0, voiceprints: 0 }]);
  });

  it.each([
    ['from=&to=tomorrow', ['from', 'to']],
    ['from=2025-02-30', ['from']],
    ['to=1746057600', ['to']],
    ['from=2025-05-03&to=2025-05-01', ['from']],
    ['from=2024-05-01&to=2025-05-02', ['from']],
    ['from=2025-05-02&to=2025-05-01', ['from']],
    ['to=9999-12-31', ['to']],
    ['from=2025-05-01T00:00:00+02:00', ['from']],
  ])('refuses %s with one error for each field', async (query, fields) => {
    const answer = await service.call('GET', `/v1/usage?${query}`);
    expect(answer.status).toBe(400);
    expect(answer.body.message).toBe('Invalid request');
    expect(faultyFields(answer)).toEqual(fields);
  });

  it('requires jobs:read', async () => {
    const { token: writer } = await service.newKey({ scopes: ['jobs:write', 'media:read'] });
    const { token: reader } = await service.newKey({ scopes: ['jobs:read'] });
    expect((await service.call('GET', '/v1/usage', { key: writer })).status).toBe(403);
    expect((await service.call('GET', '/v1/usage', { key: reader })).status).toBe(200);
    expect((await service.call('GET', '/v1/usage', { key: null })).status).toBe(401);
  });
});

describe('billing (contract §7)', () => {
  /** About nine seconds of speech. */
  const short = readFileSync(join(import.meta.dirname, '../fixtures/conversation.mp3')).subarray(0, 36_000);
  const url = `data:audio/mpeg;base64,${short.toString('base64')}`;
  const credit = async (accountId: string) =>
    (await service.run('SELECT credit_seconds FROM accounts WHERE id = ?', accountId))[0].credit_seconds;
  const start = (key: string, source: string) => service.call('POST', '/v1/diarize', { key, body: { url: source } });
  const totals = async (key: string) => (await service.call('GET', '/v1/usage', { key })).body.totals;

  it('charges at least 20 s of credit for a successful job, then answers 402 without credit', {
    timeout: 120_000,
  }, async () => {
    const { accountId, token: key } = await service.newKey({ account: 'payer', creditSeconds: 39 });
    const { body } = await start(key, url);
    expect((await waitForEnd(body.jobId, key)).status).toBe('succeeded');
    expect(await credit(accountId)).toBe(19);
    expect(await totals(key)).toEqual({ billedSeconds: 20, jobs: 1, voiceprints: 0 });
    expect((await start(key, url)).status).toBe(402);
    expect((await service.call('GET', `/v1/jobs/${body.jobId}`, { key })).status).toBe(200);
  });

  it('accepts only as many concurrent jobs as the credit covers', { timeout: 120_000 }, async () => {
    const { accountId, token: key } = await service.newKey({ account: 'hasty', creditSeconds: 39 });
    const answers = await Promise.all(Array.from({ length: 4 }, () => start(key, url)));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 402, 402, 402]);
    const accepted = answers.find(({ status }) => status === 200);
    expect((await waitForEnd(accepted?.body.jobId, key)).status).toBe('succeeded');
    expect(await credit(accountId)).toBe(19);
  });

  it('charges nothing for a failed job', async () => {
    const { accountId, token: key } = await service.newKey({ account: 'unlucky', creditSeconds: 20 });
    const { body } = await start(key, 'data:,this%20is%20not%20audio');
    expect((await waitForEnd(body.jobId, key)).status).toBe('failed');
    expect(await credit(accountId)).toBe(20);
    expect(await totals(key)).toEqual({ billedSeconds: 0, jobs: 0, voiceprints: 0 });
  });

  it('records the usage of a subscriber without charging credit', { timeout: 120_000 }, async () => {
    const { accountId, token: key } = await service.newKey({ account: 'member', creditSeconds: 0, subscribe: true });
    const { body } = await start(key, url);
    expect((await waitForEnd(body.jobId, key)).status).toBe('succeeded');
    expect(await credit(accountId)).toBe(0);
    expect(await totals(key)).toEqual({ billedSeconds: 20, jobs: 1, voiceprints: 0 });
  });
});
