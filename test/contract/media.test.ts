import { SignJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CallOptions, type ContractService, faultyFields, startContractService, text } from './service.ts';

let service: ContractService;
beforeAll(async () => {
  service = await startContractService();
});
afterAll(() => service?.stop());

const HOUR_MS = 3600_000;
const requestAddress = (url: unknown, key?: string) => service.call('POST', '/v1/media/input', { body: { url }, key });
const uploadUrl = async (name: string, key?: string): Promise<string> =>
  (await requestAddress(`media://${name}`, key)).body.url;
const put = (url: string, body: CallOptions['body'], headers?: Record<string, string>) =>
  service.call('PUT', url, { key: null, body, headers });

interface MediaRow {
  readonly object_key: string;
  readonly size_bytes: number;
  readonly created_at: number;
  readonly expires_at: number;
}
async function row(name: string, accountId = service.main.accountId): Promise<MediaRow | undefined> {
  const [found] = await service.run('SELECT * FROM media WHERE account_id = ? AND name = ?', accountId, name);
  return found as unknown as MediaRow | undefined;
}
async function bytesOf(name: string, accountId?: string): Promise<Buffer | undefined> {
  const found = await row(name, accountId);
  const object = found && (await service.bucket.get(found.object_key));
  return object ? Buffer.from(await object.arrayBuffer()) : undefined;
}
/** Bytes that differ at every position, so that a shift is noticed. */
const pattern = (sizeBytes: number) => {
  const words = new Uint32Array(sizeBytes / 4);
  for (let i = 0; i < words.length; i++) words[i] = Math.imul(i, 2654435761);
  return new Uint8Array(words.buffer);
};
/** A body without a Content-Length, in chunks that do not align with upload parts. */
const chunked = (bytes: Uint8Array) =>
  new ReadableStream<Uint8Array>({
    start(controller) {
      for (let at = 0; at < bytes.length; at += 777_777) controller.enqueue(bytes.subarray(at, at + 777_777));
      controller.close();
    },
  });

describe('POST /v1/media/input', () => {
  it('answers 201 with an address of this service', async () => {
    const answer = await requestAddress('media://a1b2c3');
    expect(answer.status).toBe(201);
    expect(Object.keys(answer.body)).toEqual(['url']);
    expect(answer.body.url.startsWith(`${service.url}/v1/media/upload/`)).toBe(true);
  });

  it.each(['media://a', 'media://path/to/Audio-1_2.wav', `media://${'a'.repeat(247)}`])('accepts %s', async (url) => {
    expect((await requestAddress(url)).status).toBe(201);
  });

  it.each([
    undefined,
    null,
    '',
    7,
    'a.wav',
    'media://',
    'media://a b',
    'media://../x',
    'media://a..b',
    'media://ä',
    'MEDIA://a',
    'https://example.com/a.wav',
    'media://a\n',
    `media://${'a'.repeat(248)}`,
  ])('refuses %j', async (url) => {
    const answer = await requestAddress(url);
    expect([answer.status, faultyFields(answer)]).toEqual([400, ['url']]);
  });

  it('refuses a body that is not an object', async () => {
    const answer = await service.call('POST', '/v1/media/input', { body: text('[]') });
    expect([answer.status, faultyFields(answer)]).toEqual([400, ['body']]);
  });
});

describe('PUT to the upload address', () => {
  it('stores the bytes without a key and without a Content-Type', async () => {
    const bytes = pattern(300_000);
    const answer = await put(await uploadUrl('plain'), bytes);
    expect([answer.status, answer.body]).toEqual([200, undefined]);
    expect(await bytesOf('plain')).toEqual(Buffer.from(bytes));
    expect(await row('plain')).toMatchObject({ size_bytes: 300_000 });
  });

  it.each(['audio/wav', 'application/octet-stream', 'application/json', 'nonsense'])(
    'accepts the type %s',
    async (type) => {
      const url = await uploadUrl('typed');
      expect((await put(url, text('bytes'), { 'Content-Type': type })).status).toBe(200);
    },
  );

  it.each([1000, 8 * 1024 * 1024, 20_000_000])('stores %i bytes sent without a length', async (sizeBytes) => {
    const bytes = pattern(sizeBytes);
    expect((await put(await uploadUrl('chunked'), chunked(bytes))).status).toBe(200);
    expect((await bytesOf('chunked'))?.equals(bytes)).toBe(true);
    expect(await row('chunked')).toMatchObject({ size_bytes: sizeBytes });
  });

  it('replaces an earlier upload to the same address', async () => {
    const url = await uploadUrl('again');
    await put(url, text('first'));
    const first = await row('again');
    await put(url, text('second'));
    expect(String(await bytesOf('again'))).toBe('second');
    // A running job can still read the first upload until it expires.
    expect(await service.bucket.head(first?.object_key ?? '')).not.toBeNull();
    const [replaced] = await service.run('SELECT * FROM media WHERE object_key = ?', first?.object_key ?? '');
    expect(replaced).toMatchObject({ expires_at: first?.expires_at });
  });

  it('keeps the earlier upload when a new one is refused', async () => {
    const url = await uploadUrl('kept');
    await put(url, text('good'));
    expect((await put(url, new Uint8Array(0))).status).toBe(400);
    expect((await put(url, chunked(new Uint8Array(0)))).status).toBe(400);
    expect(String(await bytesOf('kept'))).toBe('good');
  });

  it('keeps the earlier upload when the sender disconnects', async () => {
    const url = await uploadUrl('broken-off');
    await put(url, text('good'));
    const broken = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(pattern(100_000)),
      pull: async (controller) => {
        await new Promise((done) => setTimeout(done, 50));
        controller.error(new Error('hung up'));
      },
    });
    await expect(put(url, broken)).rejects.toThrow();
    expect(String(await bytesOf('broken-off'))).toBe('good');
  });

  it('keeps an upload for 48 hours under a random key', async () => {
    await put(await uploadUrl('kept-48'), text('x'));
    const stored = await row('kept-48');
    expect((stored?.expires_at ?? 0) - (stored?.created_at ?? 0)).toBe(48 * HOUR_MS);
    expect(Math.abs((stored?.created_at ?? 0) - Date.now())).toBeLessThan(60_000);
    expect(stored?.object_key).toMatch(/[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/);
    expect(stored?.object_key).not.toContain('kept-48');
  });

  it('stores the same name separately for each account', async () => {
    const other = await service.newKey({ account: 'other' });
    await put(await uploadUrl('same'), text('mine'));
    await put(await uploadUrl('same', other.token), text('theirs'));
    expect(String(await bytesOf('same'))).toBe('mine');
    expect(String(await bytesOf('same', other.accountId))).toBe('theirs');
  });

  it('answers 400 to a Content-Range', async () => {
    const url = await uploadUrl('resumed');
    await put(url, text('whole'));
    const headers = { 'Content-Range': 'bytes 5-9/10' };
    const answer = await service.call('PUT', url, { key: null, body: text('parts'), headers });
    expect([answer.status, faultyFields(answer)]).toEqual([400, ['Content-Range']]);
    expect(String(await bytesOf('resumed'))).toBe('whole');
    const [head, ticket] = [url.slice(0, url.lastIndexOf('/') + 1), url.slice(url.lastIndexOf('/') + 1)];
    const forged = await service.call('PUT', `${head}x${ticket}`, { key: null, body: text('parts'), headers });
    expect(forged.status).toBe(401);
  });

  it('answers 413 to a Content-Length of more than 1 GiB', async () => {
    const { hostname, port, pathname } = new URL(await uploadUrl('large'));
    const { request } = await import('node:http');
    const status = await new Promise((done, fail) => {
      const headers = { 'Content-Length': 1024 ** 3 + 1 };
      const sent = request({ hostname, port, path: pathname, method: 'PUT', headers }, (response) => {
        done(response.statusCode);
        sent.destroy();
      });
      sent.on('error', fail);
      sent.write(Buffer.alloc(1024));
    });
    expect(status).toBe(413);
    expect(await row('large')).toBeUndefined();
  });
});

describe('an upload ticket', () => {
  const ticket = (claims: Record<string, unknown>, secret = Buffer.from(service.signingKey, 'base64')) =>
    new SignJWT({
      iss: 'rollcall',
      aud: 'rollcall:media',
      sub: service.main.accountId,
      name: 'ticket',
      exp: Math.floor(Date.now() / 1000) + 60,
      ...claims,
    })
      .setProtectedHeader({ alg: 'HS256', typ: 'upload+jwt' })
      .sign(secret);
  const putTo = async (token: string) => (await put(`${service.url}/v1/media/upload/${token}`, text('x'))).status;

  it('is valid for at least an hour', async () => {
    const token = (await uploadUrl('lifetime')).split('/').pop() ?? '';
    const { exp } = JSON.parse(Buffer.from(token.split('.')[1], 'base64url').toString());
    expect(exp * 1000).toBeGreaterThanOrEqual(Date.now() + HOUR_MS);
  });

  it('is refused when it is forged or expired, and so is an API key', async () => {
    expect(await putTo(await ticket({}))).toBe(200);
    expect(await putTo(await ticket({}, Buffer.alloc(32, 1)))).toBe(401);
    expect(await putTo(await ticket({ exp: 1_600_000_000 }))).toBe(401);
    expect(await putTo(await ticket({ exp: undefined }))).toBe(401);
    expect(await putTo(await ticket({ aud: 'rollcall:api' }))).toBe(401);
    expect(await putTo(service.main.token)).toBe(401);
    expect(await putTo('nonsense')).toBe(401);
  });

  it('does not appear in the log', async () => {
    const url = await uploadUrl('logged');
    await put(url, text('x'));
    await expect.poll(() => service.log()).toContain('/v1/media/upload/:ticket');
    expect(service.log()).not.toContain(url.split('/').pop());
  });
});
