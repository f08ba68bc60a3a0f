import { createHmac } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { rotateWebhookSecret } from '../../client/account-settings.ts';
import { webhookSecretOf } from '../../client/accounts.ts';
import { WEBHOOK_SECRET_GRACE_MS } from '../../src/jobs/webhook-signature.ts';
import { startServer, type TestServer } from '../helpers/http-server.ts';
import { type ContractService, startContractService } from './service.ts';
import { storeJob } from './stored-job.ts';

interface Delivery {
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly raw: string;
  readonly atMs: number;
}

let service: ContractService;
let receiver: TestServer;
const deliveries: Delivery[] = [];

/** Behaviour of the receiver by the first segment of the path. */
const ANSWERS: Record<string, (response: ServerResponse, delivery: Delivery) => void> = {
  ok: (response) => response.writeHead(204).end(),
  broken: (response) => response.writeHead(500).end('no'),
  hang: () => {},
  circle: (response, { path }) => response.writeHead(307, { Location: path }).end(),
  moved: (response) => response.writeHead(307, { Location: '/ok/moved' }).end(),
  inside: (response) => response.writeHead(307, { Location: 'http://10.0.0.1/hook' }).end(),
  reset: (response) => response.socket?.destroy(),
};

beforeAll(async () => {
  receiver = await startServer(async (request, response) => {
    let raw = '';
    for await (const chunk of request) raw += chunk;
    const delivery = { path: request.url ?? '', headers: request.headers, raw, atMs: Date.now() };
    deliveries.push(delivery);
    ANSWERS[delivery.path.split('/')[1] ?? '']?.(response, delivery);
  });
  service = await startContractService();
});
afterAll(async () => {
  await service?.stop();
  await receiver?.close();
});

const NOT_AUDIO = 'data:,this%20is%20not%20audio';

const signatureOf = (secret: string | undefined, { headers, raw }: Delivery): string =>
  createHmac('sha256', String(secret)).update(`v0:${headers['x-request-timestamp']}:${raw}`).digest('hex');

/** Creates a job that fails immediately: its webhook needs no inference. */
async function failingJob(path: string, extra: object = {}): Promise<string> {
  const body = { url: NOT_AUDIO, webhook: `${receiver.origin}${path}`, ...extra };
  const { status, body: job } = await service.call('POST', '/v1/diarize', { body });
  expect(status).toBe(200);
  return job.jobId;
}

async function delivered(path: string, count: number, timeoutMs = 20_000): Promise<Delivery[]> {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    const found = deliveries.filter((delivery) => delivery.path === path);
    if (found.length >= count) return found;
    if (Date.now() > deadline) throw new Error(`${found.length} of ${count} deliveries to ${path}`);
    await new Promise((wake) => setTimeout(wake, 50));
  }
}

const outboxRow = async (jobId: string) =>
  (await service.run('SELECT body, due_at FROM outbox WHERE id = ?', `${jobId}/webhook`))[0];

async function settled(jobId: string): Promise<void> {
  for (let tries = 0; await outboxRow(jobId); tries++) {
    if (tries > 100) throw new Error('the webhook is still in the outbox');
    await new Promise((wake) => setTimeout(wake, 50));
  }
}

describe('contract §8: webhooks', () => {
  it('posts the job as polling returns it, signed with the secret of the account', async () => {
    const jobId = await failingJob('/ok/signed', { metadata: { call: '4711' } });
    const [delivery] = await delivered('/ok/signed', 1);
    const polled = await service.call('GET', `/v1/jobs/${jobId}`);
    expect(JSON.parse(delivery.raw)).toEqual(polled.body);
    expect(polled.body.metadata).toEqual({ call: '4711' });
    expect(polled.body.output).toEqual({ error: expect.any(String), code: expect.any(String) });
    expect(delivery.headers['content-type']).toBe('application/json');
    const timestamp = delivery.headers['x-request-timestamp'] as string;
    expect(Math.abs(Number(timestamp) - Date.now() / 1000)).toBeLessThan(30);
    const secret = await webhookSecretOf(service.run, service.main.account, service.signingKey);
    expect(delivery.headers['x-signature']).toBe(signatureOf(secret, delivery));
    expect(delivery.headers['x-signature-previous']).toBeUndefined();
    expect(delivery.headers['x-retry-num']).toBeUndefined();
    await settled(jobId);
    expect(deliveries.filter(({ path }) => path === '/ok/signed')).toHaveLength(1);
  });

  it('contains only id and status with webhookStatusOnly', async () => {
    const jobId = await failingJob('/ok/status-only', { webhookStatusOnly: true });
    const [delivery] = await delivered('/ok/status-only', 1);
    expect(JSON.parse(delivery.raw)).toEqual({ jobId, status: 'failed' });
  });

  it('contains outputs of up to 8 MiB and omits larger ones', async () => {
    const sizes = { small: 100, 'large-1': 3_000_000, 'large-2': 3_000_000, huge: 9_000_000 };
    for (const [name, bytes] of Object.entries(sizes)) {
      const id = `output-${name}`;
      const output = JSON.stringify({ diarization: [], filler: 'x'.repeat(bytes) });
      await storeJob(service, { id, status: 'succeeded', output, webhook: `${receiver.origin}/ok/${name}` });
      const message = JSON.stringify({ step: 'webhook', jobId: id, attempt: 0 });
      await service.run(
        `INSERT INTO outbox (id, job_id, queue, body, due_at, lease_until) VALUES (?, ?, 'webhooks', ?, 0, 0)`,
        `${id}/webhook`,
        id,
        message,
      );
    }
    await service.runScheduled('@boot');
    for (const [name, bytes] of Object.entries(sizes)) {
      const [delivery] = await delivered(`/ok/${name}`, 1);
      const body = JSON.parse(delivery.raw);
      const createdAt = expect.any(String);
      if (name === 'huge')
        expect(body).toEqual({ jobId: 'output-huge', status: 'succeeded', createdAt, updatedAt: createdAt });
      else expect(body.output.filler).toHaveLength(bytes);
      const secret = await webhookSecretOf(service.run, service.main.account, service.signingKey);
      expect(delivery.headers['x-signature']).toBe(signatureOf(secret, delivery));
      await settled(`output-${name}`);
    }
  });

  it('signs with both secrets for a day after a rotation, then only with the new one', async () => {
    const secret = () => webhookSecretOf(service.run, service.main.account, service.signingKey);
    const old = await secret();
    const rotation = await rotateWebhookSecret(service.run, service.main.account, Date.now());
    expect(rotation.kind).toBe('rotated');
    const current = await secret();
    expect(current).not.toBe(old);
    await failingJob('/ok/rotated');
    const [during] = await delivered('/ok/rotated', 1);
    expect(during.headers['x-signature']).toBe(signatureOf(current, during));
    expect(during.headers['x-signature-previous']).toBe(signatureOf(old, during));

    const dayAgo = Date.now() - WEBHOOK_SECRET_GRACE_MS;
    await service.run('UPDATE accounts SET webhook_secret_rotated_at = ?', dayAgo);
    await failingJob('/ok/day-after');
    const [after] = await delivered('/ok/day-after', 1);
    expect(after.headers['x-signature']).toBe(signatureOf(current, after));
    expect(after.headers['x-signature-previous']).toBeUndefined();
  });

  it('follows a redirect with method and body', async () => {
    const jobId = await failingJob('/moved/once');
    const [delivery] = await delivered('/ok/moved', 1);
    expect(JSON.parse(delivery.raw).jobId).toBe(jobId);
    await settled(jobId);
  });

  it.each([
    ['broken', 'http_error', 1],
    ['circle', 'too_many_redirects', 3],
    ['reset', undefined, 1],
  ])('retries immediately, then after a minute, when the receiver answers %s', async (kind, reason, requestsPerTry) => {
    const path = `/${kind}/retried`;
    const jobId = await failingJob(path);
    const found = await delivered(path, 2 * requestsPerTry);
    const retry = found[requestsPerTry];
    expect(retry.headers['x-retry-num']).toBe('1');
    const known = ['connection_failed', 'unknown_error'];
    expect(reason === undefined ? known : [reason]).toContain(retry.headers['x-retry-reason']);
    expect(retry.raw).toBe(found[0].raw);
    for (let tries = 0; ; tries++) {
      const row = await outboxRow(jobId);
      const waiting = JSON.parse(String(row?.body));
      if (waiting.attempt === 2) {
        expect(Math.abs(Number(row.due_at) - retry.atMs - 60_000)).toBeLessThan(5000);
        break;
      }
      expect(tries).toBeLessThan(100);
      await new Promise((wake) => setTimeout(wake, 50));
    }
    const job = await service.call('GET', `/v1/jobs/${jobId}`);
    expect(job.body.status).toBe('failed');
  });

  it('times out after ten seconds and names this reason in the retry', async () => {
    await failingJob('/hang/there');
    const [first, retry] = await delivered('/hang/there', 2, 25_000);
    expect(retry.atMs - first.atMs).toBeGreaterThan(9000);
    expect(retry.atMs - first.atMs).toBeLessThan(15_000);
    expect(retry.headers['x-retry-reason']).toBe('http_timeout');
  });

  it('never follows a redirect into a private network', async () => {
    const jobId = await failingJob('/inside/job');
    const found = await delivered('/inside/job', 2);
    expect(found[1].headers['x-retry-reason']).toBe('connection_failed');
    expect((await service.call('GET', `/v1/jobs/${jobId}`)).body.status).toBe('failed');
  });
});
