import { request } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Answer, type ContractService, startContractService, text, UUID } from './service.ts';

let service: ContractService;
beforeAll(async () => {
  service = await startContractService();
});
afterAll(() => service?.stop());

const SOURCE = 'http://127.0.0.1:9/recording.wav';

function expectApiError(answer: Answer, status: number): void {
  expect(answer.status).toBe(status);
  expect(answer.body).toEqual({ requestId: expect.stringMatching(UUID), message: expect.stringMatching(/\w/) });
  expect(answer.headers.get('X-Request-Id')).toBe(answer.body.requestId);
  expect(answer.headers.get('Content-Type')).toMatch(/^application\/json/);
}

describe('error bodies', () => {
  it('answers 401 with a challenge without a key', async () => {
    const answer = await service.call('GET', '/v1/test', { key: null });
    expectApiError(answer, 401);
    expect(answer.headers.get('WWW-Authenticate')).toMatch(/^Bearer/);
  });

  it('answers 404 for an address that does not exist', async () => {
    expectApiError(await service.call('GET', '/v1/nothing-here'), 404);
    expectApiError(await service.call('GET', '/nothing-here'), 404);
    expectApiError(await service.call('GET', '/nothing-here', { key: null }), 404);
  });

  it('answers a path of slashes as fast as other paths', async () => {
    const timeOf = async (path: string) => {
      const startedAt = performance.now();
      for (let i = 0; i < 10; i++) expectApiError(await service.call('GET', `${path}x`, { key: null }), 404);
      return performance.now() - startedAt;
    };
    const otherPathMs = await timeOf(`/${'a'.repeat(15_000)}`);
    // A pattern that removes trailing slashes takes quadratic time: 100 ms for each such path.
    expect(await timeOf('/'.repeat(15_000))).toBeLessThan(5 * otherPathMs + 300);
  });

  it('answers 405 with Allow for another method', async () => {
    const answer = await service.call('GET', '/v1/diarize');
    expectApiError(answer, 405);
    expect(answer.headers.get('Allow')).toMatch(/\bPOST\b/);
    const put = await service.call('PUT', '/v1/jobs/x/');
    expectApiError(put, 405);
    expect(put.headers.get('Allow')).toMatch(/\bGET\b/);
    expectApiError(await service.call('POST', '/v1/media/upload/x', { key: null }), 405);
  });

  it('answers 402 for less than 20 s of credit without a subscription', async () => {
    const post = async (options: { creditSeconds: number; subscribe?: boolean }, account: string) => {
      const { token } = await service.newKey({ account, ...options });
      return service.call('POST', '/v1/diarize', { key: token, body: { url: SOURCE } });
    };
    expectApiError(await post({ creditSeconds: 0 }, 'broke'), 402);
    const nearly = await post({ creditSeconds: 19.9 }, 'nearly');
    expectApiError(nearly, 402);
    expect(nearly.body.message).toContain('less than 20 s of credit');
    expect((await post({ creditSeconds: 20 }, 'just')).status).toBe(200);
    expect((await post({ creditSeconds: 0, subscribe: true }, 'subscriber')).status).toBe(200);
  });

  it('answers 413 for large bodies and 415 for other types', async () => {
    const large = new Uint8Array(13 * 1024 * 1024).fill(0x20);
    expectApiError(await service.call('POST', '/v1/diarize', { body: large }), 413);
    expectApiError(await service.call('POST', '/v1/media/input', { body: large }), 413);
    const headers = { 'Content-Type': 'audio/wav' };
    expectApiError(await service.call('POST', '/v1/media/input', { body: text('{}'), headers }), 415);
  });

  it('answers a complete 413 to a client that first sends far more than 64 MiB', { timeout: 60_000 }, async () => {
    const body = new Uint8Array(80 * 1024 * 1024);
    for (let i = 0; i < 3; i++) {
      const answer = await service.call('POST', '/v1/diarize', { body });
      expectApiError(answer, 413);
      expect(answer.body.message).toContain('12 MiB');
    }
    expectApiError(await service.call('POST', '/v1/diarize', { body, key: 'not.a.key' }), 401);
    expectApiError(await service.call('POST', '/v1/test', { body }), 405);
  });

  it('answers 413 before the body arrives when Content-Length is too large', async () => {
    const headers = { Authorization: `Bearer ${service.main.token}`, 'Content-Length': 100 * 1024 * 1024 };
    const status = await new Promise((done, fail) => {
      const sent = request(`${service.url}/v1/diarize`, { method: 'POST', headers }, (response) => {
        done(response.statusCode);
        sent.destroy();
      });
      sent.on('error', fail);
      sent.flushHeaders();
    });
    expect(status).toBe(413);
  });

  it('answers 500 without internals and logs the cause with the request id', async () => {
    await service.run('ALTER TABLE jobs RENAME TO jobs_away');
    try {
      const answer = await service.call('GET', '/v1/jobs/some-job');
      expectApiError(answer, 500);
      expect(answer.headers.get('X-RateLimit-Remaining')).toMatch(/^\d+$/);
      // Without the id, which is random and may contain "d1".
      const { requestId, ...rest } = answer.body;
      expect(requestId).toEqual(expect.any(String));
      expect(JSON.stringify(rest)).not.toMatch(/sql|table|jobs|D1|stack|\.ts/i);
      await expect.poll(() => service.log()).toContain(answer.body.requestId);
      const line =
        service
          .log()
          .split('\n')
          .find((entry) => entry.includes('request_failed')) ?? '';
      expect(line).toContain(answer.body.requestId);
      expect(line).toContain('no such table');
    } finally {
      await service.run('ALTER TABLE jobs_away RENAME TO jobs');
    }
  });
});

describe('the order of the checks', () => {
  const bad = { model: 'none' };
  const large = new Uint8Array(13 * 1024 * 1024).fill(0x20);

  it('401 comes first, also for addresses that do not exist', async () => {
    const { token } = await service.newKey({ scopes: [] });
    for (const key of [null, 'not.a.key']) {
      expectApiError(await service.call('GET', '/v1/nothing-here', { key }), 401);
      expectApiError(await service.call('GET', '/v1', { key }), 401);
      expectApiError(await service.call('DELETE', '/v1/diarize', { key }), 401);
      expectApiError(await service.call('POST', '/v1/diarize', { key, body: large }), 401);
      expectApiError(await service.call('POST', '/v1/diarize', { key, body: bad }), 401);
      expectApiError(await service.call('GET', '/v1/voiceprint', { key }), 401);
    }
    expectApiError(await service.call('POST', '/v1/diarize', { key: token, body: large }), 403);
    expectApiError(await service.call('GET', '/v1/jobs/unknown', { key: token }), 403);
  });

  it('403 before 413, 415, 400 and 402', async () => {
    const { token } = await service.newKey({ account: 'order', creditSeconds: 0, scopes: ['jobs:read'] });
    const headers = { 'Content-Type': 'audio/wav' };
    expectApiError(await service.call('POST', '/v1/diarize', { key: token, body: text('{'), headers }), 403);
  });

  it('413 before 415, 415 before 400', async () => {
    const headers = { 'Content-Type': 'audio/wav' };
    expectApiError(await service.call('POST', '/v1/diarize', { body: large, headers }), 413);
    expectApiError(await service.call('POST', '/v1/diarize', { body: text('{'), headers }), 415);
  });

  it('400 before 402', async () => {
    const { token } = await service.newKey({ account: 'order', creditSeconds: 0 });
    expect((await service.call('POST', '/v1/diarize', { key: token, body: bad })).status).toBe(400);
    expectApiError(await service.call('POST', '/v1/diarize', { key: token, body: { url: SOURCE } }), 402);
  });
});

describe('every answer', () => {
  it('carries a unique request id', async () => {
    const { body } = await service.call('POST', '/v1/media/input', { body: { url: 'media://request-id' } });
    const answers = [
      await service.call('GET', '/v1/test'),
      await service.call('GET', '/v1/test'),
      await service.call('HEAD', '/v1/test'),
      await service.call('POST', '/v1/diarize', { body: {} }),
      await service.call('POST', '/v1/diarize', { body: { url: SOURCE } }),
      await service.call('GET', '/v1/nothing-here'),
      await service.call('GET', '/elsewhere'),
      await service.call('PUT', body.url, { key: null, body: text('x') }),
      await service.call('OPTIONS', '/v1/test', {
        key: null,
        headers: { Origin: 'https://example.com', 'Access-Control-Request-Method': 'GET' },
      }),
    ];
    const ids = answers.map(({ headers }) => headers.get('X-Request-Id') ?? '');
    for (const id of ids) expect(id).toMatch(UUID);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it('allows browser pages of any origin', async () => {
    const headers = { Origin: 'https://example.com' };
    const answer = await service.call('GET', '/v1/test', { headers });
    expect(answer.headers.get('Access-Control-Allow-Origin')).toBe('*');
    expect(answer.headers.get('Access-Control-Expose-Headers')).toContain('X-Request-Id');
    const preflight = await service.call('OPTIONS', '/v1/diarize', {
      key: null,
      headers: {
        ...headers,
        'Access-Control-Request-Method': 'POST',
        'Access-Control-Request-Headers': 'authorization, content-type, idempotency-key',
      },
    });
    expect(preflight.status).toBe(204);
    expect(preflight.headers.get('Access-Control-Allow-Methods')).toContain('POST');
    expect(preflight.headers.get('Access-Control-Allow-Headers')).toMatch(/authorization.*idempotency-key/i);
    const refused = await service.call('GET', '/v1/test', { key: null, headers });
    expect(refused.headers.get('Access-Control-Allow-Origin')).toBe('*');
  });

  it('has no body for HEAD and lists the methods for OPTIONS', async () => {
    const head = await service.call('HEAD', '/v1/test');
    expect([head.status, head.body]).toEqual([200, undefined]);
    const options = await service.call('OPTIONS', '/v1/test');
    expect(options.status).toBe(204);
    expect(options.headers.get('Allow')).toMatch(/GET, HEAD/);
  });
});
