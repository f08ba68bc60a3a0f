import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { changeAccount } from '../../../client/account-settings.ts';
import { localKey } from '../../../client/cli/local-key.ts';
import { startLocalService } from '../../../client/local/service.ts';
import { RollcallClient } from '../../../client/sdk/client.ts';
import { type ContractService, startContractService } from '../../contract/service.ts';

let service: ContractService;
beforeAll(async () => {
  service = await startContractService();
});
afterAll(() => service?.stop());

it('a window ends after a minute, for which the client waits automatically', { timeout: 90_000 }, async () => {
  const { token } = await service.newKey({ account: 'limited' });
  await changeAccount(service.run, 'limited', { getLimit: 1 });
  const waits: number[] = [];
  const client = new RollcallClient({ url: service.url, key: token, onRateLimit: (seconds) => waits.push(seconds) });
  const startedAt = Date.now();
  expect((await client.test()).ok).toBe(true);
  expect((await client.test()).ok).toBe(true);
  expect(waits).toHaveLength(1);
  expect(Date.now() - startedAt).toBeGreaterThan(55_000);
});

it('windows survive a restart of the service', async () => {
  const stateDir = mkdtempSync(join(tmpdir(), 'rollcall-limits-'));
  const probe = async () => {
    const local = await startLocalService({ stateDir });
    try {
      const key = await localKey(local, stateDir);
      const answer = await fetch(`${local.url}/v1/usage`, { headers: { Authorization: `Bearer ${key}` } });
      return answer.headers.get('X-RateLimit-Remaining');
    } finally {
      await local.stop();
    }
  };
  try {
    expect([await probe(), await probe()]).toEqual(['299', '298']);
  } finally {
    rmSync(stateDir, { recursive: true, force: true });
  }
});
