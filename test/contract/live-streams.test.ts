import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { get } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { decodeJwt } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { liveCreatedSchema, liveStreamSchema } from '../../src/contract/live.ts';
import { encodeVoiceprint } from '../../src/voiceprint/voiceprint.ts';
import { connect, END_OF_STREAM, frameOf, Refused } from '../helpers/live-client.ts';
import {
  type Answer,
  text as bytes,
  type ContractService,
  faultyFields,
  startContractService,
  UUID,
} from './service.ts';

let service: ContractService;
beforeAll(async () => {
  service = await startContractService();
});
afterAll(() => service?.stop());

let accounts = 0;
/** A new account for one test, because open streams and usage count per account. */
const newAccount = (extra: object = {}) => service.newKey({ account: `streams-${++accounts}`, ...extra });
const create = (key: string, body?: object, headers = {}) => service.call('POST', '/v1/live', { key, body, headers });
const read = (id: string, key: string): Promise<Answer> => service.call('GET', `/v1/live/${id}`, { key });

/** Status of the answer to an upgrade; 101 for a connection, which is closed immediately. */
async function upgrade(url: string, origin?: string): Promise<number> {
  try {
    (await connect(url, origin)).socket.close();
    return 101;
  } catch (error) {
    if (error instanceof Refused) return error.status;
    throw error;
  }
}

/** The answer to a handshake with exactly these headers. */
function handshake(url: string, headers: Record<string, string | undefined>) {
  const sent = Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined));
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  return new Promise<{ status: number; version?: string; body: any }>((done, fail) => {
    const request = get(url.replace(/^ws/, 'http'), { headers: sent as Record<string, string> }, (response) => {
      const version = response.headers['sec-websocket-version'];
      text(response).then((body) => done({ status: response.statusCode ?? 0, version, body: JSON.parse(body) }), fail);
    });
    request.on('upgrade', () => fail(new Error('connected')));
    request.on('error', fail);
  });
}

const GOOD_HANDSHAKE = {
  Connection: 'Upgrade',
  Upgrade: 'websocket',
  'Sec-WebSocket-Version': '13',
  'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
};

const voiceprint = (dimension = 192, embeddingId = 'embedder-v6') =>
  encodeVoiceprint({ embeddingId, embedding: new Float32Array(dimension).fill(1), secondsAlone: 10 });

describe('POST /v1/live', () => {
  it('returns only an id and a WebSocket address of this origin with a signed token', async () => {
    const { token: key } = await newAccount();
    const { status, body } = await create(key, {});
    expect(status).toBe(200);
    expect(liveCreatedSchema.strict().safeParse(body).error).toBeUndefined();
    expect(body.id).toMatch(UUID);
    const url = new URL(body.url);
    expect(url.protocol).toBe('ws:');
    expect(url.host).toBe(new URL(service.url).host);
    expect([...url.searchParams.keys()]).toEqual(['token']);
    expect(decodeJwt(url.searchParams.get('token')!).sub).toBe(body.id);
    expect(body.url).not.toContain(key);
  });

  it('accepts a missing body and null for every option', async () => {
    const { token: key } = await newAccount();
    const headers = { Authorization: `Bearer ${key}` };
    const bare = await fetch(`${service.url}/v1/live`, { method: 'POST', headers });
    expect(bare.status).toBe(200);
    // aiohttp sends application/octet-stream with a missing body.
    for (const type of ['application/json', 'application/octet-stream'])
      expect((await create(key, undefined, { 'Content-Type': type })).status, type).toBe(200);
    const typed = { 'Content-Type': 'application/octet-stream' };
    expect((await service.call('POST', '/v1/live', { key, body: bytes('{}'), headers: typed })).status).toBe(415);
    const nullOptions = {
      corrections: null,
      resume: null,
      voiceprints: null,
      maxSpeakers: null,
      sampleRate: null,
      encoding: null,
      envelope: null,
      latency: null,
      model: null,
    };
    const { body } = await create(key, { ...nullOptions, unknown: 1 });
    expect((await read(body.id, key)).body.input).toEqual({});
  });

  it('reports every faulty option together', async () => {
    const good = { label: 'Ann', voiceprint: voiceprint() };
    const answer = await create(service.main.token, {
      voiceprints: [good, { ...good }, { label: 'SPEAKER_00', voiceprint: voiceprint(8) }, { label: 'Bob' }],
      maxSpeakers: 9,
      sampleRate: 11_025,
      encoding: 'mp3',
      latency: 299,
      corrections: 'yes',
      resume: 'yes',
      model: 'best',
    });
    expect(answer.status).toBe(400);
    expect(faultyFields(answer).sort()).toEqual([
      'corrections',
      'encoding',
      'latency',
      'maxSpeakers',
      'model',
      'resume',
      'sampleRate',
      'voiceprints.1.label',
      'voiceprints.2.label',
      'voiceprints.2.voiceprint',
      'voiceprints.3.voiceprint',
    ]);
  });

  it.each([
    [{ latency: 5001 }, 'latency'],
    [{ latency: 300.5 }, 'latency'],
    [{ maxSpeakers: 0 }, 'maxSpeakers'],
    [{ sampleRate: '16000' }, 'sampleRate'],
    [{ encoding: 'mulaw', sampleRate: 16_000 }, 'sampleRate'],
    [{ envelope: 'twilio', encoding: 'pcm_s16le' }, 'encoding'],
    [{ envelope: 'vonage' }, 'envelope'],
    [{ voiceprints: [] }, 'voiceprints'],
    [{ voiceprints: [{ label: 'x', voiceprint: 'bm9uc2Vuc2U=' }] }, 'voiceprints.0.voiceprint'],
    [[], 'body'],
  ])('refuses %j', async (body, field) => {
    const answer = await create(service.main.token, body);
    expect(answer.status).toBe(400);
    expect(faultyFields(answer)).toContain(field);
  });

  it('accepts at most fifty voiceprints', async () => {
    const { token: key } = await newAccount();
    const people = (count: number) =>
      Array.from({ length: count }, (_, i) => ({ label: `Person ${i}`, voiceprint: voiceprint() }));
    expect((await create(key, { voiceprints: people(50) })).status).toBe(200);
    expect(faultyFields(await create(key, { voiceprints: people(51) }))).toEqual(['voiceprints']);
  });

  it('requires stream:write and credit; GET requires stream:read', async () => {
    const { token: reader } = await service.newKey({ scopes: ['stream:read', 'jobs:write'] });
    const { token: writer } = await service.newKey({ scopes: ['stream:write', 'jobs:read'] });
    const { token: unfunded } = await newAccount({ creditSeconds: 19 });
    expect((await create(reader, {})).status).toBe(403);
    expect((await create(unfunded, {})).status).toBe(402);
    expect((await service.call('POST', '/v1/live', { key: null, body: {} })).status).toBe(401);
    const { body } = await create(writer, {});
    expect((await read(body.id, writer)).status).toBe(403);
    expect((await read(body.id, reader)).status).toBe(200);
  });

  it('allows an account exactly ten open streams', async () => {
    const { token: key } = await newAccount();
    const answers = await Promise.all(Array.from({ length: 30 }, () => create(key, {})));
    const opened = answers.filter(({ status }) => status === 200);
    expect(opened).toHaveLength(10);
    const refused = answers.find(({ status }) => status === 429)!;
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(20);
    expect(refused.headers.get('Retry-After')).toMatch(/^\d+$/);
    expect(refused.body).toEqual({
      requestId: expect.stringMatching(UUID),
      message: expect.stringContaining('10 open live'),
    });
    const client = await connect(opened[0].body.url);
    expect((await create(key, {})).status).toBe(429);
    client.send(END_OF_STREAM);
    await client.closed;
    expect((await create(key, {})).status).toBe(200);
    expect((await create((await newAccount()).token, {})).status).toBe(200);
  });
});

describe('GET /v1/live/{id}', () => {
  it('returns the state, its times and the options without voiceprints', async () => {
    const { token: key } = await newAccount();
    const options = { sampleRate: 8000, encoding: 'pcm_s16le', latency: 500, maxSpeakers: 3, model: 'community-1' };
    const { body } = await create(key, {
      ...options,
      voiceprints: [{ label: 'Ann Secret', voiceprint: voiceprint() }],
    });
    expect((await read(body.id, key)).body).toEqual({
      id: body.id,
      status: 'created',
      startedAt: null,
      completedAt: null,
      input: options,
    });
    const client = await connect(body.url);
    const running = (await read(body.id, key)).body;
    expect(running).toMatchObject({ status: 'running', startedAt: expect.any(String), completedAt: null });
    client.send(END_OF_STREAM);
    await client.closed;
    const done = (await read(body.id, key)).body;
    expect(done).toMatchObject({ status: 'done', startedAt: running.startedAt });
    expect(liveStreamSchema.strict().safeParse(done).error).toBeUndefined();
    expect(done.completedAt >= done.startedAt).toBe(true);
    const rows = JSON.stringify(await service.run('SELECT * FROM live_streams WHERE id = ?', body.id));
    expect(rows).not.toContain('Secret');
    expect(service.log()).not.toContain('Secret');
    expect(service.log()).not.toContain(new URL(body.url).searchParams.get('token'));
  });

  it('answers the same 404 for unknown and foreign streams', async () => {
    const { body } = await create((await newAccount()).token, {});
    const { token: stranger } = await newAccount();
    const answers = [await read(body.id, stranger), await read(randomUUID(), stranger), await read('x', stranger)];
    for (const answer of answers) {
      expect(answer).toMatchObject({ status: 404, body: { message: answers[0].body.message } });
    }
  });
});

describe('the voiceprints of a stream', () => {
  /** All files of the service's Durable Objects as one text. */
  function storedText(): string {
    const folder = join(service.stateDir, 'v3', 'do');
    const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((file) => file.isFile());
    return files.map((file) => readFileSync(join(file.parentPath, file.name), 'latin1')).join('\n');
  }

  it('are stored by its object only until the stream ends', async () => {
    const { token: key } = await newAccount();
    const { body } = await create(key, { voiceprints: [{ label: 'Zoe-4711', voiceprint: voiceprint() }] });
    await expect.poll(storedText).toContain('Zoe-4711');
    const client = await connect(body.url);
    client.send(END_OF_STREAM);
    await client.closed;
    await expect.poll(storedText, { timeout: 20_000 }).not.toContain('Zoe-4711');
  });
});

describe('the address of a stream', () => {
  it('accepts one of a hundred concurrent connections', async () => {
    const { body } = await create((await newAccount()).token, {});
    const answers = await Promise.all(Array.from({ length: 100 }, () => upgrade(body.url)));
    expect(answers.filter((status) => status === 101)).toHaveLength(1);
    expect(answers.filter((status) => status === 401)).toHaveLength(99);
  });

  it('answers 401 to a second connection, also after the first has closed', async () => {
    const { body } = await create((await newAccount()).token, {});
    const client = await connect(body.url);
    expect(await upgrade(body.url)).toBe(401);
    client.send(END_OF_STREAM);
    await client.closed;
    expect(await upgrade(body.url)).toBe(401);
  });

  it('explains in its 401 that a stream has one connection', async () => {
    const { body } = await create((await newAccount()).token, {});
    expect(await upgrade(body.url)).toBe(101);
    const answer = await handshake(body.url, GOOD_HANDSHAKE);
    expect(answer).toMatchObject({ status: 401, body: { requestId: expect.stringMatching(UUID) } });
    expect(answer.body.message).toMatch(/already used .*POST \/v1\/live/);
    const unknown = await handshake(`${body.url}0`, GOOD_HANDSHAKE);
    expect(unknown.body.message).toBe(answer.body.message);
  });

  it('answers 401 without the token of its stream', async () => {
    const { token: key } = await newAccount();
    const [one, two] = [(await create(key, {})).body, (await create(key, {})).body];
    const other = new URL(one.url);
    other.search = new URL(two.url).search;
    for (const url of [
      other.href,
      one.url.replace(/token=.*/, ''),
      `${one.url}0`,
      one.url.replace(one.id, randomUUID()),
      one.url.replace(/token=.*/, `token=${'%00'.repeat(64)}`),
      one.url.replace(/token=.*/, `token=${'%C3%A9'.repeat(64)}`),
    ]) {
      expect(await upgrade(url), url).toBe(401);
    }
    expect(await upgrade(one.url)).toBe(101);
    expect(await upgrade(two.url)).toBe(101);
  });

  it('allows only the origins of the key, and clients without an Origin header', async () => {
    const origins = ['https://a.example', 'https://b.example:8443'];
    const { token: key } = await newAccount({ origins });
    const [one, two, three] = [(await create(key)).body, (await create(key)).body, (await create(key)).body];
    for (const origin of ['https://c.example', 'https://b.example', 'null', 'https://a.example.c.example'])
      expect(await handshake(one.url, { ...GOOD_HANDSHAKE, Origin: origin })).toMatchObject({
        status: 403,
        body: { requestId: expect.stringMatching(UUID), message: expect.stringContaining('origin') },
      });
    expect(await upgrade(one.url, origins[0])).toBe(101);
    expect(await upgrade(two.url, origins[1])).toBe(101);
    expect(await upgrade(three.url)).toBe(101);
    const { body: anywhere } = await create((await newAccount()).token);
    expect(await upgrade(anywhere.url, 'https://c.example')).toBe(101);
  });

  it('answers 426 to a plain GET, which does not use up the token', async () => {
    const { body } = await create((await newAccount()).token, {});
    const plain = await service.call('GET', body.url.replace(/^ws/, 'http'), { key: null });
    expect(plain).toMatchObject({ status: 426, body: { requestId: expect.stringMatching(UUID) } });
    expect(await upgrade(body.url)).toBe(101);
  });

  it('answers 426 or 400 to a faulty handshake, which does not use up the token', async () => {
    const { body } = await create((await newAccount()).token, {});
    const faults: [Record<string, string | undefined>, number][] = [
      [{ 'Sec-WebSocket-Version': undefined }, 426],
      [{ 'Sec-WebSocket-Version': '8' }, 426],
      [{ 'Sec-WebSocket-Version': '13, 8' }, 426],
      [{ 'Sec-WebSocket-Key': undefined }, 400],
      [{ 'Sec-WebSocket-Key': 'short' }, 400],
      [{ 'Sec-WebSocket-Key': 'AAAAAAAAAAAAAAAAAAAA' }, 400],
      [{ Upgrade: 'h2c' }, 426],
    ];
    for (const [change, status] of faults) {
      const answer = await handshake(body.url, { ...GOOD_HANDSHAKE, ...change });
      expect(answer.status, JSON.stringify(change)).toBe(status);
      if (status === 426)
        expect(answer.body).toEqual({ requestId: expect.stringMatching(UUID), message: expect.any(String) });
      else expect(answer.body.errors).toEqual([{ field: 'Sec-WebSocket-Key', message: 'must be 16 bytes in base64' }]);
      if ('Sec-WebSocket-Version' in change) expect(answer.version).toBe('13');
    }
    expect(await upgrade(body.url)).toBe(101);
  });
});

it('a sweep ends abandoned streams, with or without a Durable Object', async () => {
  const { accountId, token: key } = await newAccount();
  const [abandoned, fresh] = [(await create(key, {})).body.id, (await create(key, {})).body.id];
  await service.run('UPDATE live_streams SET created_at = 0 WHERE id = ?', abandoned);
  const withoutObject = randomUUID();
  const row = `INSERT INTO live_streams (id, account_id, status, input, created_at, started_at)
    VALUES (?, ?, 'running', '{}', 0, 0)`;
  await service.run(row, withoutObject, accountId);
  await service.runScheduled('*/5 * * * *');
  expect((await read(withoutObject, key)).body).toMatchObject({ status: 'error', completedAt: expect.any(String) });
  await expect.poll(async () => (await read(abandoned, key)).body.status, { timeout: 3000 }).toBe('error');
  expect((await read(fresh, key)).body.status).toBe('created');
  expect((await service.call('GET', '/v1/usage', { key })).body.totals.jobs).toBe(0);
});

it('a sweep does not end an old stream that still receives audio', async () => {
  const { token: key } = await newAccount();
  const { body } = await create(key, {});
  const client = await connect(body.url);
  await client.stream(Array(5).fill(frameOf(0)), 40);
  await service.run('UPDATE live_streams SET started_at = started_at - ? WHERE id = ?', 40 * 60_000, body.id);
  await service.runScheduled('*/5 * * * *');
  await sleep(500);
  await client.stream(Array(5).fill(frameOf(0)), 40);
  expect((await read(body.id, key)).body.status).toBe('running');
  client.send(END_OF_STREAM);
  expect((await client.closed).code).toBe(1000);
  expect((await read(body.id, key)).body.status).toBe('done');
  expect((await service.call('GET', '/v1/usage', { key })).body.totals).toMatchObject({ jobs: 1, billedSeconds: 20 });
});
