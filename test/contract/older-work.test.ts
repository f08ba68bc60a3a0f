import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { WORK_VERSION } from '../../src/jobs/work-keys.ts';
import { conversationFile } from '../helpers/voices.ts';
import { type ContractService, startContractService } from './service.ts';
import { storeJob } from './stored-job.ts';

let service: ContractService;
let recording: Uint8Array<ArrayBuffer>;
/** A job of this version and its output. */
let referenceJob: { id: string; output: unknown };
beforeAll(async () => {
  service = await startContractService();
  recording = await conversationFile(12);
  const { body } = await service.call('POST', '/v1/media/input', { body: { url: 'media://talk' } });
  await service.call('PUT', body.url, { key: null, body: recording });
  const job = await service.call('POST', '/v1/diarize', { body: { url: 'media://talk', exclusive: true } });
  referenceJob = { id: job.body.jobId, output: await outputOf(job.body.jobId) };
}, 120_000);
afterAll(() => service?.stop());

async function outputOf(id: string): Promise<unknown> {
  for (;;) {
    const { body } = await service.call('GET', `/v1/jobs/${id}`);
    if (body.status === 'succeeded') return body.output;
    if (body.status === 'failed') throw new Error(JSON.stringify(body));
    await new Promise((wake) => setTimeout(wake, 200));
  }
}

/**
 * Stores a running job as an older version, or this version with other models, would leave it: with another layout of
 * plan and parts, another number of shards, and messages in the outbox.
 *
 * @param suffix of the names of plan and parts
 * @param recorded the source in its plan, and the URL of its request
 */
async function jobOfOlderVersion(
  id: string,
  suffix: string,
  steps: readonly object[],
  recorded: { readonly source: object; readonly url: string } = { source: {}, url: 'media://talk' },
): Promise<void> {
  await storeJob(service, { id, status: 'running', url: recorded.url });
  await service.run(
    `UPDATE jobs SET shard_count = 5,
       request = json_set((SELECT request FROM jobs WHERE id = ?), '$.url', ?) WHERE id = ?`,
    referenceJob.id,
    recorded.url,
    id,
  );
  const index = { format: 'mp4', codec: 'aac', sampleRateHz: 44100, channels: 2, totalSamples: 5, durationSeconds: 1 };
  const plan = {
    version: 1,
    source: recorded.source,
    index,
    totalSamples: 5,
    shards: Array(5).fill({ startSample: 0, endSample: 5 }),
  };
  await service.bucket.put(`work/${id}/plan${suffix}.json`, JSON.stringify(plan));
  for (let shard = 0; shard < 5; shard++)
    await service.bucket.put(`work/${id}/part${suffix}-0000${shard}`, 'another layout');
  for (const step of steps) {
    const body = { jobId: id, ...step };
    const key = 'shard' in body ? `${id}/shard/${body.shard}` : `${id}/assemble`;
    await service.run(
      `INSERT INTO outbox (id, job_id, queue, body, due_at, lease_until) VALUES (?, ?, 'jobs', ?, 0, 0)`,
      key,
      id,
      JSON.stringify(body),
    );
  }
  await service.runScheduled('@boot');
}

const OTHER_MODELS = `-v${WORK_VERSION}-${'0'.repeat(16)}`;

it.each<[string, string, object[]]>([
  ['an older version left with some shards analysed', '', [2, 3, 4].map((shard) => ({ step: 'shard', shard }))],
  ['an older version left before its assembly', '', [{ step: 'assemble' }]],
  [
    'a version without model names left with some shards analysed',
    `-v${WORK_VERSION}`,
    [2, 3, 4].map((shard) => ({ step: 'shard', shard })),
  ],
  ['other models left before its assembly', OTHER_MODELS, [{ step: 'assemble' }]],
])(
  'a job that %s reads its recording again and has the same output',
  async (name, suffix, steps) => {
    const id = `older-${name.length}`;
    await jobOfOlderVersion(id, suffix, steps);
    expect(await outputOf(id)).toEqual(referenceJob.output);
    expect(service.log()).toContain(`"job_ingested","jobId":"${id}"`);
    await expect.poll(async () => (await service.bucket.list({ prefix: `work/${id}/` })).objects).toEqual([]);
    expect(await service.run('SELECT id FROM outbox WHERE job_id = ?', id)).toEqual([]);
    const [job] = await service.run('SELECT shard_count, duration_seconds FROM jobs WHERE id = ?', id);
    expect(job).toMatchObject({ shard_count: 1 });
    expect(job.duration_seconds).toBe(12);
  },
  120_000,
);

it('a job that an older version created but did not plan runs after the migration', async () => {
  const id = 'older-plan';
  await storeJob(service, { id, status: 'created', url: 'media://talk' });
  await service.run(
    `UPDATE jobs SET request = json_set((SELECT request FROM jobs WHERE id = ?), '$.url', 'media://talk') WHERE id = ?`,
    referenceJob.id,
    id,
  );
  await service.run(
    `INSERT INTO outbox (id, job_id, queue, body, due_at, lease_until) VALUES (?, ?, 'plans', ?, 0, 0)`,
    `${id}/plan`,
    id,
    JSON.stringify({ step: 'plan', jobId: id }),
  );
  await service.run(readFileSync(new URL('../../migrations/0009_ingest.sql', import.meta.url), 'utf8'));
  await service.runScheduled('@boot');
  expect(await outputOf(id)).toEqual(referenceJob.output);
}, 120_000);

it('a job of an older version reads its copy of the recording, not the expired address', async () => {
  const id = 'older-copy';
  const key = `work/${id}/source-0`;
  await service.bucket.put(key, recording);
  const source = { kind: 'object', key, sizeBytes: recording.length };
  await jobOfOlderVersion(
    id,
    '-v1',
    [2, 3, 4].map((shard) => ({ step: 'shard', shard })),
    {
      source,
      url: 'http://127.0.0.1:9/expired.mp3',
    },
  );
  expect(await outputOf(id)).toEqual(referenceJob.output);
  await expect.poll(async () => (await service.bucket.list({ prefix: `work/${id}/` })).objects).toEqual([]);
}, 120_000);
