import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { revokeKey } from '../../client/accounts.ts';
import { conversationFile } from '../helpers/voices.ts';
import { type ContractService, startContractService, UUID } from './service.ts';
import { storeJob } from './stored-job.ts';

let service: ContractService;
beforeAll(async () => {
  service = await startContractService();
});
afterAll(() => service?.stop());

interface SentEvent {
  readonly id: number;
  readonly event: string;
  readonly data: { jobId: string; status?: string; progress?: number; output?: object };
}

const open = (jobId: string, { key = service.main.token, query = '', headers = {} } = {}) =>
  fetch(`${service.url}/v1/jobs/${jobId}/events${query}`, {
    headers: { Authorization: `Bearer ${key}`, ...headers },
  });

/** Parses a server-sent event stream until it ends or `isComplete` returns true. */
async function eventsOf(
  response: Response,
  isComplete: (events: SentEvent[]) => boolean = () => false,
): Promise<SentEvent[]> {
  const events: SentEvent[] = [];
  let text = '';
  const decoder = new TextDecoder();
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    text += decoder.decode(chunk, { stream: true });
    for (let end = text.indexOf('\n\n'); end !== -1; end = text.indexOf('\n\n')) {
      const lines = text.slice(0, end).split('\n');
      text = text.slice(end + 2);
      const field = (name: string) => lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
      const data = field('data');
      if (data) events.push({ id: Number(field('id')), event: String(field('event')), data: JSON.parse(data) });
    }
    if (isComplete(events)) break;
  }
  return events;
}
const setStatus = (id: string, status: string) =>
  service.run('UPDATE jobs SET status = ?, completed_at = ? WHERE id = ?', status, Date.now(), id);

describe('GET /v1/jobs/{jobId}/events', () => {
  it('sends the states and the rising progress of a job until it ends', async () => {
    const { body } = await service.call('POST', '/v1/media/input', { body: { url: 'media://watched' } });
    await service.call('PUT', body.url, { key: null, body: await conversationFile(12) });
    const { jobId } = (await service.call('POST', '/v1/diarize', { body: { url: 'media://watched' } })).body;
    const response = await open(jobId);
    expect(response.status).toBe(200);
    expect(response.headers.get('Content-Type')).toBe('text/event-stream');
    expect(response.headers.get('X-Request-Id')).toMatch(UUID);
    expect(response.headers.get('Cache-Control')).toBe('no-store');
    const events = await eventsOf(response);
    expect(events.at(-1)).toMatchObject({ event: 'status', data: { jobId, status: 'succeeded' } });
    const states = events.filter(({ event }) => event === 'status').map(({ data }) => data.status);
    const order = ['created', 'pending', 'running', 'succeeded'];
    expect(states).toEqual(order.filter((status) => states.includes(status)));
    const progress = events.filter(({ event }) => event === 'progress').map(({ data }) => data.progress ?? -1);
    expect(progress.at(-1)).toBe(1);
    for (const list of [progress, events.map(({ id }) => id)]) {
      expect(list).toEqual([...new Set(list)].sort((a, b) => a - b));
    }
    expect(progress.every((value) => value >= 0 && value <= 1)).toBe(true);

    const middle = events.at(-2)?.id ?? 0;
    const resumed = await eventsOf(await open(jobId, { headers: { 'Last-Event-ID': String(middle) } }));
    expect(resumed).toEqual(events.slice(-1));
    const byQuery = await eventsOf(await open(jobId, { query: `?lastEventId=${middle}` }));
    expect(byQuery).toEqual(events.slice(-1));
    expect((await open(jobId, { query: `?lastEventId=${events.at(-1)?.id}` })).status).toBe(204);
    for (const id of ['x', '-5', '45000', '9'.repeat(400)]) {
      expect((await eventsOf(await open(jobId, { headers: { 'Last-Event-ID': id } }))).at(-1)?.data.status).toBe(
        'succeeded',
      );
    }
  }, 120_000);

  it('sends changes within seconds, with the error of a failed job', async () => {
    await storeJob(service, { id: 'changing', status: 'created', metadata: { call: '1' } });
    // The last id of another, ended job is ignored.
    const response = await open('changing', { headers: { 'Last-Event-ID': '30000' } });
    expect(response.status).toBe(200);
    const events = eventsOf(response);
    await new Promise((wake) => setTimeout(wake, 1500));
    await service.run("UPDATE jobs SET error_code = 'no_speech', error_message = 'No speech.' WHERE id = 'changing'");
    await setStatus('changing', 'failed');
    const seen = await events;
    expect(seen.map(({ data }) => data.status)).toEqual(['created', 'failed']);
    const { body } = await service.call('GET', '/v1/jobs/changing');
    expect(seen.at(-1)?.data).toEqual(body);
    expect(body).toMatchObject({ metadata: { call: '1' }, output: { error: 'No speech.', code: 'no_speech' } });
  }, 30_000);

  it('ends for all watchers when the job is canceled or deleted', async () => {
    for (const [id, end] of [
      ['end-cancel', () => service.call('POST', '/v1/jobs/end-cancel/cancel')],
      ['end-delete', () => service.call('DELETE', '/v1/jobs/end-delete')],
    ] as const) {
      await storeJob(service, { id, status: 'created' });
      const watchers = await Promise.all(Array.from({ length: 20 }, () => open(id)));
      const all = watchers.map((response) => eventsOf(response));
      await end();
      const last = (await Promise.all(all)).map((events) => events.at(-1)?.data.status);
      const expected = id === 'end-cancel' ? 'canceled' : 'created';
      expect(new Set(last)).toEqual(new Set([expected]));
    }
  }, 60_000);

  it('keeps an idle connection open with comments', async () => {
    await storeJob(service, { id: 'quiet', status: 'pending' });
    const response = await open('quiet');
    let text = '';
    const reading = (async () => {
      const body = response.body as unknown as AsyncIterable<Uint8Array>;
      for await (const chunk of body) text += Buffer.from(chunk).toString();
    })();
    await expect.poll(() => text, { timeout: 25_000 }).toMatch(/^: /m);
    await setStatus('quiet', 'failed');
    await reading;
    expect(text).toContain('"status":"failed"');
  }, 70_000);

  it.each([
    ['revoked', (keyId: string) => revokeKey(service.run, keyId, Date.now())],
    [
      'left without jobs:read',
      (keyId: string) => service.run(`UPDATE api_keys SET scopes = 'jobs:write' WHERE id = ?`, keyId),
    ],
  ])(
    'sends no more events once the key is %s',
    async (keyChange, change) => {
      const id = `secret-${keyChange}`;
      await storeJob(service, { id, status: 'pending' });
      const key = await service.newKey();
      const events = eventsOf(await open(encodeURIComponent(id), { key: key.token }));
      await change(key.keyId);
      expect((await events).map(({ data }) => data.status)).toEqual(['pending']);
      await setStatus(id, 'failed');
    },
    40_000,
  );

  it('answers 404 for unknown and foreign jobs, and requires jobs:read', async () => {
    const other = await service.newKey({ account: 'other' });
    const writer = await service.newKey({ scopes: ['jobs:write'] });
    await storeJob(service, { id: 'theirs', status: 'failed', accountId: other.accountId });
    expect((await service.call('GET', '/v1/jobs/theirs/events')).status).toBe(404);
    expect((await service.call('GET', '/v1/jobs/nowhere/events')).status).toBe(404);
    expect((await eventsOf(await open('theirs', { key: other.token }))).at(-1)?.data.status).toBe('failed');
    expect((await service.call('GET', '/v1/jobs/theirs/events', { key: writer.token })).status).toBe(403);
    expect((await service.call('GET', '/v1/jobs/theirs/events', { key: null })).status).toBe(401);
    const head = await service.call('HEAD', '/v1/jobs/theirs/events', { key: other.token });
    expect([head.status, head.body]).toEqual([200, undefined]);
  });
});
