import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Deployed, takeFirstSteps } from '../../../client/deploy/first-steps.ts';
import { runSqlOn } from '../../../client/local/database.ts';
import { type LocalService, startLocalService } from '../../../client/local/service.ts';
import { root } from '../../helpers/local-process.ts';

let stateDir: string;
let service: LocalService;
beforeAll(async () => {
  stateDir = mkdtempSync(join(tmpdir(), 'rollcall-smoke-'));
  service = await startLocalService({ stateDir });
});
afterAll(async () => {
  await service?.stop();
  rmSync(stateDir, { recursive: true, force: true, maxRetries: 5 });
});

const deployment = (say: Deployed['say']): Deployed => ({
  root,
  instance: 'rollcall',
  address: service.url,
  signingKey: service.signingKey,
  run: runSqlOn(service.db),
  say,
});

it('creates the first key of a service once and tests the service with a recording', async () => {
  const output: string[] = [];
  await takeFirstSteps(deployment((line) => output.push(line)));
  await takeFirstSteps(deployment((line) => output.push(line)));
  const keys = output.filter((line) => line.startsWith('key: ')).map((line) => line.slice('key: '.length));
  expect(keys).toHaveLength(1);
  const headers = { Authorization: `Bearer ${keys[0]}` };
  expect((await fetch(`${service.url}/v1/test`, { headers })).status).toBe(200);
  expect(output.filter((line) => /^smoke test: found the \d speakers of a conversation/.test(line))).toHaveLength(2);
  // The keys of the tests are revoked.
  const [{ activeKeys }] = await runSqlOn(service.db)<{ activeKeys: number }>(
    'SELECT COUNT(*) AS activeKeys FROM api_keys WHERE revoked_at IS NULL',
  );
  expect(activeKeys).toBe(1);
}, 120_000);

it('reports the endpoint that does not work', async () => {
  const unreachable = { ...deployment(() => {}), address: 'http://127.0.0.1:9', patienceMs: 100 };
  await expect(takeFirstSteps(unreachable)).rejects.toThrow(/does not work: GET \/healthz: /);
});
