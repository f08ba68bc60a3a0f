import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Answer, type ContractService, faultyFields, startContractService } from '../../contract/service.ts';
import { storeJob } from '../../contract/stored-job.ts';
import { conversationFile } from '../../helpers/voices.ts';

let service: ContractService;
let first: Answer['body'];
beforeAll(async () => {
  service = await startContractService();
  const { body } = await service.call('POST', '/v1/media/input', { body: { url: 'media://conversation' } });
  await service.call('PUT', body.url, { key: null, body: await conversationFile(30) });
  const created = await service.call('POST', '/v1/diarize', {
    body: { url: 'media://conversation', exclusive: true, metadata: { call: '4711' } },
  });
  first = await waitForEnd(created.body.jobId);
}, 180_000);
afterAll(() => service?.stop());

async function waitForEnd(id: string): Promise<Answer['body']> {
  for (;;) {
    const job = (await service.call('GET', `/v1/jobs/${id}`)).body;
    if (['succeeded', 'failed', 'canceled'].includes(job.status)) return job;
    await new Promise((wake) => setTimeout(wake, 200));
  }
}

const recount = (id: string, body: object, key?: string) =>
  service.call('POST', `/v1/jobs/${id}/recount`, { body, key });
const speakersOf = ({ output }: Answer['body']) =>
  new Set(output.diarization.map(({ speaker }: { speaker: string }) => speaker)).size;

describe('POST /v1/jobs/{jobId}/recount', () => {
  it('creates a job with another number of speakers and the options and metadata of the first', async () => {
    const { status, body } = await recount(first.jobId, { numSpeakers: 2, minSpeakers: null });
    expect([status, body]).toEqual([200, { jobId: expect.any(String), status: 'created' }]);
    const second = await waitForEnd(body.jobId);
    expect(second).toMatchObject({ status: 'succeeded', metadata: { call: '4711' } });
    expect(Object.keys(second.output)).toEqual(['diarization', 'exclusiveDiarization']);
    expect([speakersOf(first), speakersOf(second)]).toEqual([3, 2]);
    const { body: usage } = await service.call('GET', '/v1/usage');
    const [minSeconds, maxSeconds] = [20, 60];
    expect(usage.totals.billedSeconds).toBeGreaterThanOrEqual(minSeconds);
    expect(usage.totals.billedSeconds).toBeLessThan(maxSeconds);
  });

  it('reports all faulty bounds together', async () => {
    const answer = await recount(first.jobId, { numSpeakers: 0, minSpeakers: 3, maxSpeakers: 2 });
    expect([answer.status, faultyFields(answer).sort()]).toEqual([400, ['maxSpeakers', 'minSpeakers', 'numSpeakers']]);
  });

  it('answers 409 for jobs without an analysis and 404 for foreign jobs', async () => {
    await storeJob(service, { id: 'runs', status: 'running' });
    await storeJob(service, { id: 'older', status: 'succeeded', output: '{"diarization":[]}' });
    await storeJob(service, { id: 'print', status: 'succeeded', kind: 'voiceprint', output: '{"voiceprint":"A"}' });
    for (const id of ['runs', 'older', 'print']) expect((await recount(id, {})).status).toBe(409);
    const { token } = await service.newKey({ account: 'other' });
    expect((await recount(first.jobId, {}, token)).status).toBe(404);
    expect((await recount('nowhere', {})).status).toBe(404);
  });

  it('answers 409 after the first job is deleted', async () => {
    const { body } = await recount(first.jobId, {});
    await waitForEnd(body.jobId);
    expect(await service.bucket.head(`analyses/${first.jobId}`)).not.toBeNull();
    expect((await service.call('DELETE', `/v1/jobs/${first.jobId}`)).status).toBe(204);
    expect(await service.bucket.head(`analyses/${first.jobId}`)).toBeNull();
    expect((await recount(body.jobId, {})).status).toBe(409);
  });
});
