import { request } from 'node:http';
import { SignJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ContractService, faultyFields, startContractService, text } from './service.ts';

let service: ContractService;
beforeAll(async () => {
  service = await startContractService();
});
afterAll(() => service?.stop());

const CONTENT = Uint8Array.from({ length: 100_000 }, (_, i) => (i * 31) % 251);

async function upload(name: string, content: Uint8Array<ArrayBuffer>, key?: string): Promise<void> {
  const { body } = await service.call('POST', '/v1/media/input', { body: { url: `media://${name}` }, key });
  expect((await service.call('PUT', body.url, { key: null, body: content })).status).toBe(200);
}
const requestAddress = (name: string, key?: string) =>
  service.call('POST', '/v1/media/output', { body: { url: `media://${name}` }, key });
const addressOf = async (name: string, key?: string): Promise<string> => (await requestAddress(name, key)).body.url;
const get = (url: string, headers: Record<string, string> = {}) => fetch(url, { headers });
const bytesOf = async (response: Response) => Buffer.from(await response.arrayBuffer());
const expire = (name: string) => service.run('UPDATE media SET expires_at = ? WHERE name = ?', Date.now() - 1, name);

/** Status and headers on the wire: `fetch` hides the Content-Length of HEAD. */
const headersOf = (url: string, method: string) =>
  new Promise<Record<string, unknown>>((done, fail) => {
    request(url, { method }, (response) => {
      response.resume().on('end', () => done({ status: response.statusCode, ...response.headers }));
    })
      .on('error', fail)
      .end();
  });

describe('POST /v1/media/output', () => {
  it('answers 201 with an address that serves the bytes without a key', async () => {
    await upload('talks/monday', CONTENT);
    const answer = await requestAddress('talks/monday');
    expect([answer.status, Object.keys(answer.body)]).toEqual([201, ['url']]);
    expect(answer.body.url.startsWith(`${service.url}/v1/media/download/`)).toBe(true);
    const response = await get(answer.body.url);
    expect(response.status).toBe(200);
    expect(response.headers.get('Content-Type')).toBe('application/octet-stream');
    expect(response.headers.get('Content-Length')).toBe('100000');
    expect(response.headers.get('Accept-Ranges')).toBe('bytes');
    expect(response.headers.get('Content-Disposition')).toBe('attachment; filename="monday"');
    expect((await bytesOf(response)).equals(CONTENT)).toBe(true);
  });

  it('answers 304 to a matching ETag, single or in a list, strong or weak', async () => {
    await upload('known', CONTENT);
    const url = await addressOf('known');
    const etag = (await get(url)).headers.get('ETag')!;
    for (const names of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
      const answer = await get(url, { 'If-None-Match': names, Range: 'bytes=0-9' });
      expect([answer.status, (await bytesOf(answer)).length, answer.headers.get('ETag')], names).toEqual([
        304,
        0,
        etag,
      ]);
    }
    expect((await get(url, { 'If-None-Match': '"other"' })).status).toBe(200);
  });

  it('truncates a range with a huge end to the recording', async () => {
    await upload('part', CONTENT);
    const response = await get(await addressOf('part'), { Range: `bytes=99990-${'9'.repeat(400)}` });
    expect([response.status, response.headers.get('Content-Range')]).toEqual([206, 'bytes 99990-99999/100000']);
  });

  it('answers the same 404 for unknown, expired and foreign names', async () => {
    const other = await service.newKey({ account: 'other' });
    await upload('mine', text('mine'));
    await upload('past', text('past'));
    const pastAddress = await addressOf('past');
    await expire('past');
    const answers = [
      await requestAddress('nothing'),
      await requestAddress('past'),
      await requestAddress('mine', other.token),
    ];
    for (const { status, body } of answers) expect([status, body.message]).toEqual([404, 'Not found.']);
    expect((await get(pastAddress)).status).toBe(404);
    await upload('mine', text('theirs'), other.token);
    expect(String(await bytesOf(await get(await addressOf('mine', other.token))))).toBe('theirs');
    expect(String(await bytesOf(await get(await addressOf('mine'))))).toBe('mine');
  });

  it.each([undefined, '', 7, 'a.wav', 'media://', 'media://../x', 'https://example.com/a'])(
    'refuses %j',
    async (url) => {
      const answer = await service.call('POST', '/v1/media/output', { body: { url } });
      expect([answer.status, faultyFields(answer)]).toEqual([400, ['url']]);
    },
  );

  it('requires media:read', async () => {
    const writer = await service.newKey({ scopes: ['media:write', 'jobs:read'] });
    const reader = await service.newKey({ scopes: ['media:read'] });
    await upload('scoped', text('x'));
    expect((await requestAddress('scoped', writer.token)).status).toBe(403);
    expect((await requestAddress('scoped', reader.token)).status).toBe(201);
    expect((await service.call('POST', '/v1/media/output', { key: null, body: {} })).status).toBe(401);
    expect((await service.call('GET', '/v1/media/output')).status).toBe(405);
  });
});

describe('GET of the download address', () => {
  let url = '';
  beforeAll(async () => {
    await upload('ranges', CONTENT);
    url = await addressOf('ranges');
  });

  it.each([
    ['bytes=0-0', 0, 1],
    ['bytes=10-19', 10, 20],
    ['bytes=99990-', 99_990, 100_000],
    ['bytes=-5', 99_995, 100_000],
    ['bytes=99999-200000', 99_999, 100_000],
    ['bytes=-200000', 0, 100_000],
  ])('serves the range %s', async (range, from, to) => {
    const response = await get(url, { Range: range });
    expect(response.status).toBe(206);
    expect(response.headers.get('Content-Range')).toBe(`bytes ${from}-${to - 1}/100000`);
    expect(response.headers.get('Content-Length')).toBe(String(to - from));
    expect((await bytesOf(response)).equals(CONTENT.subarray(from, to))).toBe(true);
  });

  it.each(['bytes=100000-', 'bytes=200000-200001', 'bytes=-0'])('answers 416 for the range %s', async (range) => {
    const response = await get(url, { Range: range });
    expect(response.status).toBe(416);
    expect(response.headers.get('Content-Range')).toBe('bytes */100000');
  });

  it.each(['bytes=20-10', 'bytes=-', 'bytes=0-1,5-6', 'lines=1-2', 'nonsense'])(
    'ignores the range %s',
    async (range) => {
      const response = await get(url, { Range: range });
      expect([response.status, (await bytesOf(response)).length]).toEqual([200, 100_000]);
    },
  );

  it('serves a range with If-Range only of the same upload', async () => {
    await upload('replaced', text('0123456789'));
    const address = await addressOf('replaced');
    const etag = (await get(address)).headers.get('ETag') ?? '';
    const resume = () => get(address, { Range: 'bytes=5-', 'If-Range': etag });
    expect(String(await bytesOf(await resume()))).toBe('56789');
    await upload('replaced', text('abcdefghij'));
    const full = await resume();
    expect([full.status, String(await bytesOf(full))]).toEqual([200, 'abcdefghij']);
  });

  it('answers HEAD with the length', async () => {
    expect(await headersOf(url, 'HEAD')).toMatchObject({ status: 200, 'content-length': '100000' });
  });

  it('refuses a forged or expired ticket, an API key and an upload ticket', async () => {
    const ticket = (claims: object, typ = 'download+jwt', secret = Buffer.from(service.signingKey, 'base64')) =>
      new SignJWT({
        iss: 'rollcall',
        aud: 'rollcall:media',
        sub: service.main.accountId,
        name: 'ranges',
        exp: Math.floor(Date.now() / 1000) + 60,
        ...claims,
      })
        .setProtectedHeader({ alg: 'HS256', typ })
        .sign(secret);
    const statusOf = async (token: string) => (await get(`${service.url}/v1/media/download/${token}`)).status;
    expect(await statusOf(await ticket({}))).toBe(200);
    expect(await statusOf(await ticket({}, 'download+jwt', Buffer.alloc(32, 1)))).toBe(401);
    expect(await statusOf(await ticket({ exp: 1_600_000_000 }))).toBe(401);
    expect(await statusOf(await ticket({}, 'upload+jwt'))).toBe(401);
    expect(await statusOf(await ticket({ name: 'nothing' }))).toBe(404);
    expect(await statusOf(service.main.token)).toBe(401);
    const download = url.split('/').pop();
    const put = await service.call('PUT', `${service.url}/v1/media/upload/${download}`, { key: null, body: text('x') });
    expect(put.status).toBe(401);
  });

  it('is not logged with its ticket', async () => {
    await get(url);
    await expect.poll(() => service.log()).toContain('/v1/media/download/:ticket');
    expect(service.log()).not.toContain(url.split('/').pop());
  });
});
