import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startServer, type TestServer } from '../helpers/http-server.ts';
import { startReceiver } from '../helpers/webhook-receiver.ts';
import { type Answer, type ContractService, startContractService } from './service.ts';
import { storeJob } from './stored-job.ts';

let service: ContractService;
let receiver: Awaited<ReturnType<typeof startReceiver>>;
/** A source that never answers: its jobs stay in their first step. */
let silent: TestServer;
beforeAll(async () => {
  [service, receiver, silent] = await Promise.all([startContractService(), startReceiver(), startServer(() => {})]);
});
afterAll(async () => {
  await service?.stop();
  await receiver?.close();
  await silent?.close();
});

const read = (id: string, key?: string) => service.call('GET', `/v1/jobs/${id}`, { key });
const cancel = (id: string, key?: string) => service.call('POST', `/v1/jobs/${id}/cancel`, { key });
const remove = (id: string, key?: string) => service.call('DELETE', `/v1/jobs/${id}`, { key });
const CANCELED = { error: 'The job was canceled.', code: 'canceled' };

async function createJob(body: object, headers?: Record<string, string>): Promise<string> {
  const answer = await service.call('POST', '/v1/diarize', { body, headers });
  expect(answer.status).toBe(200);
  return answer.body.jobId;
}
const count = async (table: string, id: string) =>
  Number((await service.run(`SELECT COUNT(*) AS n FROM ${table} WHERE job_id = ?`, id))[0]?.n);
const workKeys = async (id: string) =>
  (await service.bucket.list({ prefix: `work/${id}/` })).objects.map(({ key }) => key);
const webhooksOf = (id: string) => receiver.received.filter(({ body }) => body.jobId === id);
const pause = (ms: number) => new Promise((wake) => setTimeout(wake, ms));

describe('POST /v1/jobs/{jobId}/cancel', () => {
  it('ends a job that waits for its source', async () => {
    const id = await createJob({ url: `${silent.origin}/recording.wav`, webhook: receiver.url });
    expect((await cancel(id)).body).toMatchObject({ status: 'canceled', output: CANCELED });
    await expect.poll(() => webhooksOf(id)).toHaveLength(1);
    await expect.poll(() => count('outbox', id)).toBe(0);
    expect(await workKeys(id)).toEqual([]);
  });

  it.each(['created', 'pending', 'running'])('ends a %s job', async (status) => {
    await storeJob(service, { id: `cancel-${status}`, status });
    const answer = await cancel(`cancel-${status}`);
    expect([answer.status, answer.body.status, answer.body.output]).toEqual([200, 'canceled', CANCELED]);
    expect(Date.parse(answer.body.updatedAt)).toBeGreaterThan(Date.parse(answer.body.createdAt));
  });

  it('does not change a job that has ended, nor its output', async () => {
    await storeJob(service, { id: 'done', status: 'succeeded', output: '{"diarization":[]}', webhook: receiver.url });
    await storeJob(service, { id: 'broken', status: 'failed', error: { code: 'no_speech', message: 'No speech.' } });
    for (const id of ['done', 'broken']) {
      const before = (await read(id)).body;
      const answer = await cancel(id);
      expect([answer.status, answer.body]).toEqual([200, before]);
    }
    expect((await cancel('done')).body.output).toEqual({ diarization: [] });
    const repeated = [await cancel('cancel-created'), await cancel('cancel-created')];
    expect(repeated[1]?.body).toEqual(repeated[0]?.body);
    expect(webhooksOf('done')).toEqual([]);
  });

  it('cancels once and sends one webhook for concurrent requests', async () => {
    const id = await createJob({ url: `${silent.origin}/race.wav`, webhook: receiver.url });
    const answers = await Promise.all(Array.from({ length: 10 }, () => cancel(id)));
    for (const { status, body } of answers) expect([status, body]).toEqual([200, answers[0]?.body]);
    await expect.poll(() => webhooksOf(id)).toHaveLength(1);
    await pause(500);
    expect(webhooksOf(id)).toHaveLength(1);
  });
});

describe('DELETE /v1/jobs/{jobId}', () => {
  const expectNotFound = async (id: string, key?: string): Promise<void> => {
    const unknown = await read('job-nowhere', key);
    const answers: [string, Answer][] = [
      ['read', await read(id, key)],
      ['cancel', await cancel(id, key)],
      ['delete', await remove(id, key)],
      ['events', await service.call('GET', `/v1/jobs/${id}/events`, { key })],
      ['output', await service.call('GET', `/v1/jobs/${id}/output`, { key })],
    ];
    for (const [name, { status, body }] of answers) {
      expect([name, status, Object.keys(body), body.message]).toEqual([
        name,
        404,
        Object.keys(unknown.body),
        unknown.body.message,
      ]);
    }
  };

  it('deletes output, working data and the content of the record, and keeps the usage', async () => {
    const output = '{"diarization":[]}';
    const metadata = { person: 'somebody' };
    await storeJob(service, {
      id: 'full',
      status: 'succeeded',
      output,
      metadata,
      url: 'https://example.com/private.mp3',
    });
    await service.bucket.put('work/full/source', 'audio');
    await service.run(
      `INSERT INTO usage_records (job_id, account_id, kind, billed_seconds, created_at)
       VALUES ('full', ?, 'diarize', 20, 0)`,
      service.main.accountId,
    );
    const answer = await remove('full');
    expect([answer.status, answer.body]).toEqual([204, undefined]);
    await expectNotFound('full');
    expect(await service.bucket.head('outputs/full.json')).toBeNull();
    expect(await workKeys('full')).toEqual([]);
    const [row] = await service.run("SELECT * FROM jobs WHERE id = 'full'");
    expect(JSON.stringify(row)).not.toMatch(/somebody|private/);
    expect(await count('usage_records', 'full')).toBe(1);
  });

  it('deletes the recording of a data: URL', async () => {
    await storeJob(service, { id: 'inline', status: 'running', url: 'data:' });
    await service.bucket.put('work/inline/url', 'data:audio/wav;base64,AAAA');
    await remove('inline');
    expect(await workKeys('inline')).toEqual([]);
  });

  it('frees its Idempotency-Key for a new job', async () => {
    const headers = { 'Idempotency-Key': 'deleted-job' };
    const body = { url: `${silent.origin}/idempotent.wav` };
    const first = await createJob(body, headers);
    expect(await createJob(body, headers)).toBe(first);
    await remove(first);
    const second = await createJob(body, headers);
    expect(second).not.toBe(first);
    expect(await createJob(body, headers)).toBe(second);
    const other = await service.call('POST', '/v1/diarize', { body: { ...body, exclusive: true }, headers });
    expect(other.status).toBe(409);
  });
});

describe('cancel and DELETE', () => {
  it('answer 404 for jobs of another account and do not change them', async () => {
    const other = await service.newKey({ account: 'other' });
    await storeJob(service, { id: 'cancel-foreign', status: 'running', accountId: other.accountId });
    for (const answer of [
      await cancel('cancel-foreign'),
      await remove('cancel-foreign'),
      await cancel('nowhere'),
      await remove('x'),
    ]) {
      expect([answer.status, answer.body.message]).toEqual([404, 'Not found.']);
    }
    expect((await read('cancel-foreign', other.token)).body.status).toBe('running');
    expect((await remove('cancel-foreign', other.token)).status).toBe(204);
  });

  it('hide the output from a key without jobs:read', async () => {
    const { token } = await service.newKey({ scopes: ['jobs:write'] });
    const output = '{"diarization":[]}';
    await storeJob(service, { id: 'unread', status: 'succeeded', output, metadata: { secret: 'yes' } });
    expect((await read('unread', token)).status).toBe(403);
    const withoutOutput = await cancel('unread', token);
    expect(withoutOutput.status).toBe(200);
    expect(Object.keys(withoutOutput.body).sort()).toEqual(['createdAt', 'jobId', 'status', 'updatedAt']);
    const { token: readWriteToken } = await service.newKey({ scopes: ['jobs:write', 'jobs:read'] });
    expect((await cancel('unread', readWriteToken)).body).toMatchObject({
      output: JSON.parse(output),
      metadata: { secret: 'yes' },
    });
  });

  it('require jobs:write', async () => {
    const { token } = await service.newKey({ scopes: ['jobs:read', 'media:write'] });
    await storeJob(service, { id: 'guarded', status: 'running' });
    expect([(await cancel('guarded', token)).status, (await remove('guarded', token)).status]).toEqual([403, 403]);
    expect((await read('guarded', token)).body.status).toBe('running');
    const bare = await service.call('POST', '/v1/jobs/guarded/cancel', { key: null });
    expect(bare.status).toBe(401);
    const wrong = await service.call('GET', '/v1/jobs/guarded/cancel');
    expect([wrong.status, wrong.headers.get('Allow')]).toEqual([405, 'POST, OPTIONS']);
    const allowed = await service.call('OPTIONS', '/v1/jobs/guarded');
    expect(allowed.headers.get('Allow')).toMatch(/GET.*DELETE/);
  });
});
