import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ContractService, startContractService } from './service.ts';

let service: ContractService;
beforeAll(async () => {
  service = await startContractService();
});
afterAll(() => service?.stop());

const HOUR_MS = 3600_000;

interface StoredJob {
  readonly id: string;
  readonly status: string;
  readonly completedAt?: number;
  readonly output?: string;
  readonly error?: { code: string; message: string };
  readonly accountId?: string;
}

/** Writes a job in a given state to the database: the API reaches some states only after hours or failures. */
async function put(job: StoredJob): Promise<void> {
  const { id, status, completedAt = null, output, error } = job;
  const outputKey = output === undefined ? null : `outputs/${id}.json`;
  if (outputKey && output !== undefined) await service.bucket.put(outputKey, output);
  await service.run(
    `INSERT INTO jobs (id, account_id, kind, status, request, created_at, updated_at, completed_at, output_key,
       error_code, error_message)
     VALUES (?, ?, 'diarize', ?, '{"url":"https://example.com"}', 1750000000123, 1750000005000, ?, ?, ?, ?)`,
    id,
    job.accountId ?? service.main.accountId,
    status,
    completedAt,
    outputKey,
    error?.code ?? null,
    error?.message ?? null,
  );
}
const read = (id: string, key?: string) => service.call('GET', `/v1/jobs/${id}`, { key });
const TIMES = { createdAt: '2025-06-15T15:06:40.123Z', updatedAt: '2025-06-15T15:06:45.000Z' };

describe('GET /v1/jobs/{jobId}', () => {
  it.each(['created', 'pending', 'running'])('returns a %s job without output', async (status) => {
    await put({ id: `job-${status}`, status });
    const answer = await read(`job-${status}`);
    expect(answer.status).toBe(200);
    expect(answer.body).toEqual({ jobId: `job-${status}`, status, ...TIMES });
  });

  it('returns the stored output of a successful job byte for byte', async () => {
    const output = '{"diarization":[{"speaker":"SPEAKER_00","start":1.245,"end":3.38}],"warning":"\\u00fc"}';
    await put({ id: 'job-ok', status: 'succeeded', completedAt: Date.now(), output });
    const answer = await fetch(`${service.url}/v1/jobs/job-ok`, {
      headers: { Authorization: `Bearer ${service.main.token}` },
    });
    expect(answer.headers.get('Content-Type')).toMatch(/^application\/json/);
    const text = await answer.text();
    expect(text.endsWith(`,"output":${output}}`)).toBe(true);
    expect(JSON.parse(text)).toEqual({ jobId: 'job-ok', status: 'succeeded', ...TIMES, output: JSON.parse(output) });
  });

  it('returns a large output completely', async () => {
    const score = Array.from({ length: 2_000_000 }, (_, i) => i % 101);
    const output = JSON.stringify({ diarization: [], confidence: { score, resolution: 0.02 } });
    await put({ id: 'job-large', status: 'succeeded', completedAt: Date.now(), output });
    const { body } = await read('job-large');
    expect(body.output.confidence.score).toHaveLength(2_000_000);
    expect(body.output.confidence.score.at(-1)).toBe(score.at(-1));
  });

  it.each(['failed', 'canceled'])('returns error and code of a %s job', async (status) => {
    const error = { code: 'source_not_found', message: 'The recording was not found.' };
    await put({ id: `job-${status}`, status, completedAt: Date.now(), error });
    const { body } = await read(`job-${status}`);
    expect(body).toEqual({
      jobId: `job-${status}`,
      status,
      ...TIMES,
      output: { error: error.message, code: error.code },
    });
  });

  it.each(['failed', 'canceled'])('omits the error of a %s job after 24 hours', async (status) => {
    const error = { code: 'source_not_found', message: 'The recording was not found.' };
    await put({ id: `old-${status}`, status, completedAt: Date.now() - 24 * HOUR_MS, error });
    expect((await read(`old-${status}`)).body).toEqual({ jobId: `old-${status}`, status, ...TIMES });
  });

  it('omits an output older than 24 hours, also before the sweep', async () => {
    await put({
      id: 'job-past',
      status: 'succeeded',
      completedAt: Date.now() - 24 * HOUR_MS,
      output: '{"diarization":[]}',
    });
    await put({ id: 'job-swept', status: 'succeeded', completedAt: Date.now() - 48 * HOUR_MS });
    for (const id of ['job-past', 'job-swept']) {
      const answer = await read(id);
      expect(answer.status).toBe(200);
      expect(answer.body).toEqual({ jobId: id, status: 'succeeded', ...TIMES });
    }
    await put({
      id: 'job-fresh',
      status: 'succeeded',
      completedAt: Date.now() - 23.9 * HOUR_MS,
      output: '{"diarization":[]}',
    });
    expect((await read('job-fresh')).body.output).toEqual({ diarization: [] });
  });

  it('answers the same 404 for unknown and foreign jobs', async () => {
    const other = await service.newKey({ account: 'other' });
    await put({
      id: 'job-foreign',
      status: 'succeeded',
      completedAt: Date.now(),
      output: '{}',
      accountId: other.accountId,
    });
    expect((await read('job-foreign', other.token)).status).toBe(200);
    const foreign = await read('job-foreign');
    const unknown = await read('job-nowhere');
    expect([foreign.status, unknown.status]).toEqual([404, 404]);
    expect(foreign.body.message).toBe(unknown.body.message);
    expect(Object.keys(foreign.body)).toEqual(Object.keys(unknown.body));
    for (const id of ['x'.repeat(2000), '%00', '%E0%A4%A', "'; DROP TABLE jobs; --"]) {
      expect((await read(encodeURI(id).replaceAll('%25', '%'))).status).toBe(404);
    }
  });

  it('accepts trailing slashes and HEAD', async () => {
    await put({ id: 'job-slash', status: 'succeeded', completedAt: Date.now(), output: '{"diarization":[]}' });
    expect((await read('job-slash/')).body.output).toEqual({ diarization: [] });
    const head = await service.call('HEAD', '/v1/jobs/job-slash');
    expect([head.status, head.body]).toEqual([200, undefined]);
  });
});
