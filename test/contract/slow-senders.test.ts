import { request } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Answer, type ContractService, startContractService } from './service.ts';

const MIB = 1024 * 1024;
let service: ContractService;
let other: Awaited<ReturnType<ContractService['newKey']>>;
beforeAll(async () => {
  service = await startContractService();
  other = await service.newKey({ account: 'other' });
});
afterAll(() => service?.stop());

/** Sends the beginning of a body and then stops; returns the answer and its delay. */
function stopAfter(bytes: number, { method = 'POST', url = `${service.url}/v1/diarize`, headers = {} } = {}) {
  const startedAt = Date.now();
  const sent = request(url, { method, headers: { Authorization: `Bearer ${service.main.token}`, ...headers } });
  const answered = new Promise<{ status?: number; text: string; milliseconds: number }>((resolve, reject) => {
    sent.on('error', reject);
    sent.on('response', (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
      });
      response.on('end', () => resolve({ status: response.statusCode, text, milliseconds: Date.now() - startedAt }));
      response.on('error', reject); // the sender was stopped while the answer arrived
    });
  });
  answered.catch(() => undefined); // some tests do not await the answer
  sent.write(new Uint8Array(bytes).fill(0x20));
  return { answered, stop: () => sent.destroy() };
}
const lengthOf = (bytes: number) => ({ 'Content-Length': String(bytes), 'Content-Type': 'application/json' });
const large = () => ({ url: `data:audio/wav;base64,${'A'.repeat(1.4 * MIB)}` });

describe.concurrent('senders that stop', { timeout: 90_000 }, () => {
  it('answers 400 when a body stalls', async ({ expect }) => {
    const stopped = [10, 500_000].map((bytes) => stopAfter(bytes, { headers: lengthOf(bytes + 1) }));
    for (const { answered } of stopped) {
      const { status, text, milliseconds } = await answered;
      expect([status, text]).toEqual([400, expect.stringContaining('came too slowly')]);
      expect(milliseconds).toBeLessThan(25_000);
    }
  });

  it('accepts large bodies of other accounts while those of one account stall', async () => {
    const stopped = [1, 2, 3].map(() => stopAfter(1.2 * MIB, { headers: lengthOf(2 * MIB) }));
    await new Promise((wake) => setTimeout(wake, 500));
    const answer: Answer = await service.call('POST', '/v1/diarize', { key: other.token, body: large() });
    expect(answer.status).not.toBe(429);
    for (const { stop } of stopped) stop();
  });

  it('refuses a stalled upload without storing it, and accepts others meanwhile', async () => {
    const addressFor = async (key: string) => {
      const answer = await service.call('POST', '/v1/media/input', { key, body: { url: 'media://slow' } });
      return String(answer.body.url);
    };
    const url = await addressFor(service.main.token);
    const options = { method: 'PUT', url, headers: { 'Transfer-Encoding': 'chunked' } };
    const [first, ...rest] = [1, 2, 3].map(() => stopAfter(MIB, options));
    const { readable, writable } = new TransformStream<Uint8Array>();
    const writer = writable.getWriter();
    void writer.write(new Uint8Array(1000)).then(() => writer.close());
    const put = await service.call('PUT', await addressFor(other.token), { key: null, body: readable });
    expect(put.status).toBe(200);
    const { status, text } = await first.answered;
    expect([status, text]).toEqual([400, expect.stringContaining('came too slowly')]);
    for (const { stop } of rest) stop();
    expect((await service.bucket.list({ prefix: `media/${service.main.accountId}/` })).objects).toEqual([]);
  });
});
