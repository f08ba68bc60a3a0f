import { afterAll, beforeAll, expect, it } from 'vitest';
import { type ContractService, startContractService, UUID } from './service.ts';

let service: ContractService;
beforeAll(async () => {
  service = await startContractService();
});
afterAll(() => service?.stop());

it('reports without a key whether the service accepts jobs', async () => {
  const health = () => service.call('GET', '/healthz', { key: null });
  expect(await health()).toMatchObject({ status: 200, body: { status: 'ok' } });
  expect((await service.call('POST', '/healthz', { key: null })).status).toBe(405);

  await service.run('ALTER TABLE jobs RENAME TO jobs_away');
  await expect.poll(async () => (await health()).status, { timeout: 15_000, interval: 500 }).toBe(503);
  const refused = await health();
  expect(refused.headers.get('Retry-After')).toBe('10');
  expect(refused.body).toEqual({ requestId: expect.stringMatching(UUID), message: expect.stringMatching(/\w/) });

  await service.run('ALTER TABLE jobs_away RENAME TO jobs');
  await expect.poll(async () => (await health()).status, { timeout: 15_000, interval: 500 }).toBe(200);
}, 60_000);
