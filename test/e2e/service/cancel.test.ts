import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type ContractService, startContractService } from '../../contract/service.ts';
import { conversation } from '../../helpers/local-process.ts';
import { loopMp3 } from '../../helpers/mp3.ts';
import { startReceiver } from '../../helpers/webhook-receiver.ts';

let service: ContractService;
let receiver: Awaited<ReturnType<typeof startReceiver>>;
beforeAll(async () => {
  [service, receiver] = await Promise.all([startContractService(), startReceiver()]);
});
afterAll(async () => {
  await service?.stop();
  await receiver?.close();
});

const read = (id: string) => service.call('GET', `/v1/jobs/${id}`);
const count = async (table: string, id: string) =>
  Number((await service.run(`SELECT COUNT(*) AS n FROM ${table} WHERE job_id = ?`, id))[0]?.n);
const webhooksOf = (id: string) => receiver.received.filter(({ body }) => body.jobId === id);
const pause = (ms: number) => new Promise((wake) => setTimeout(wake, ms));

/** Creates a job of eleven minutes of audio and waits until its analysis has begun. */
async function workingJob(webhook?: string): Promise<string> {
  const { body } = await service.call('POST', '/v1/media/input', { body: { url: 'media://long' } });
  await service.call('PUT', body.url, { key: null, body: new Uint8Array(loopMp3(readFileSync(conversation), 12)) });
  const created = await service.call('POST', '/v1/diarize', { body: { url: 'media://long', webhook } });
  const id: string = created.body.jobId;
  await expect
    .poll(async () => Number((await read(id)).headers.get('X-Job-Progress') ?? 0), { timeout: 60_000 })
    .toBeGreaterThan(0.02);
  return id;
}
const countLogged = (event: string, id: string) =>
  service
    .log()
    .split('\n')
    .filter((line) => line.includes(`"${event}"`) && line.includes(id)).length;
/** Waits until running steps of the job have finished or stopped, then checks that no further ones run. */
async function expectStopped(id: string): Promise<void> {
  await pause(13_000);
  const done = countLogged('shard_done', id);
  await pause(5000);
  expect(countLogged('shard_done', id)).toBe(done);
  expect(done).toBeLessThan(3);
  expect(countLogged('job_assembled', id)).toBe(0);
}

it('cancel stops a running job, sends its webhook and bills nothing', async () => {
  const id = await workingJob(receiver.url);
  const answer = await service.call('POST', `/v1/jobs/${id}/cancel`);
  expect(answer.status).toBe(200);
  expect(answer.body).toMatchObject({
    jobId: id,
    status: 'canceled',
    output: { error: 'The job was canceled.', code: 'canceled' },
  });
  expect((await read(id)).body).toEqual(answer.body);
  await expect.poll(() => webhooksOf(id), { timeout: 10_000 }).toHaveLength(1);
  expect(webhooksOf(id)[0]?.body).toEqual(answer.body);
  await expectStopped(id);
  expect([await count('usage_records', id), await count('outbox', id)]).toEqual([0, 0]);
  expect((await read(id)).body).toEqual(answer.body);
}, 120_000);

it('DELETE stops a running job without a webhook and keeps the upload', async () => {
  const id = await workingJob(receiver.url);
  expect((await service.call('DELETE', `/v1/jobs/${id}`)).status).toBe(204);
  expect((await read(id)).status).toBe(404);
  await expectStopped(id);
  expect([webhooksOf(id).length, await count('usage_records', id), await count('outbox', id)]).toEqual([0, 0, 0]);
  expect(await service.bucket.head(`outputs/${id}.json`)).toBeNull();
  const upload = await service.call('POST', '/v1/media/output', { body: { url: 'media://long' } });
  expect(upload.status).toBe(201);
}, 120_000);
