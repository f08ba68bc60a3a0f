import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { conversationFile } from '../helpers/voices.ts';
import { type Answer, type ContractService, startContractService } from './service.ts';

const BUCKET_URL = 'https://0123456789abcdef0123456789abcdef.r2.cloudflarestorage.com/rollcall';
const SECRET = 'a-secret-access-key';

let service: ContractService;
beforeAll(async () => {
  service = await startContractService({
    R2_ACCOUNT_ID: '0123456789abcdef0123456789abcdef',
    R2_ACCESS_KEY_ID: 'access-key',
    R2_SECRET_ACCESS_KEY: SECRET,
    R2_BUCKET_NAME: 'rollcall',
  });
});
afterAll(() => service?.stop());

const requestAddress = (direction: 'input' | 'output', name: string, key?: string) =>
  service.call('POST', `/v1/media/${direction}`, { body: { url: `media://${name}` }, key });
const keyOf = (url: string) => decodeURIComponent(url.slice(BUCKET_URL.length + 1).split('?')[0] ?? '');
/** Writes to the bucket what a PUT to the address would write; such a PUT does not go through the Worker. */
async function put(name: string, bytes: Uint8Array, key?: string): Promise<string> {
  const { status, body } = await requestAddress('input', name, key);
  expect(status).toBe(201);
  expect(body.url.startsWith(`${BUCKET_URL}/media/`)).toBe(true);
  await service.bucket.put(keyOf(body.url), bytes);
  return body.url;
}
async function run(name: string, key?: string): Promise<Answer['body']> {
  const { body } = await service.call('POST', '/v1/diarize', { body: { url: `media://${name}` }, key });
  let job: Answer['body'];
  await expect
    .poll(
      async () => {
        job = (await service.call('GET', `/v1/jobs/${body.jobId}`, { key })).body;
        return job.status;
      },
      { timeout: 90_000 },
    )
    .toMatch(/succeeded|failed/);
  return job;
}

describe('with the credentials of the bucket', () => {
  it('a job reads the latest upload to the bucket', async () => {
    await put('talk', new TextEncoder().encode('not audio'));
    expect((await run('talk')).status).toBe('failed');
    await put('talk', await conversationFile(20));
    const job = await run('talk');
    expect([job.status, job.output.diarization.length > 2]).toEqual(['succeeded', true]);
  }, 120_000);

  it('gives download addresses in the bucket for uploaded recordings', async () => {
    expect((await requestAddress('output', 'nothing')).status).toBe(404);
    const url = await put('read-back', new Uint8Array([1, 2, 3]));
    const { status, body } = await requestAddress('output', 'read-back');
    expect([status, keyOf(body.url)]).toEqual([201, keyOf(url)]);
    expect(new URL(body.url).searchParams.get('X-Amz-Signature')).toMatch(/^[0-9a-f]{64}$/);
  });

  it('keeps accounts apart', async () => {
    const other = await service.newKey({ account: 'other' });
    await put('private', new Uint8Array([1]));
    expect((await requestAddress('output', 'private', other.token)).status).toBe(404);
    const job = await run('private', other.token);
    expect(job.output.code).toBe('source_not_found');
  });

  it('never returns or logs the secret', async () => {
    const { body } = await requestAddress('input', 'secret');
    expect(JSON.stringify(body) + service.log()).not.toContain(SECRET);
  });
});
