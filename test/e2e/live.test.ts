import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { openDatabase } from '../../client/local/database.ts';
import { findProcess } from '../../client/local/processes.ts';
import { connect, frameOf } from '../helpers/live-client.ts';
import { type RunningService, root, startService } from '../helpers/local-process.ts';

let stateDir: string;
let service: RunningService;

afterEach(async () => {
  if (service && (findProcess(service.pid) || service.workerdPids().length > 0)) await service.killAll();
  rmSync(stateDir, { recursive: true, force: true, maxRetries: 5 });
});

async function call(method: string, path: string) {
  const headers = { Authorization: `Bearer ${service.key}` };
  const response = await fetch(service.url + path, { method, headers });
  return (await response.json()) as Record<string, string | null>;
}

it('a stream whose service is killed ends as an error and is not billed', async () => {
  stateDir = mkdtempSync(join(tmpdir(), 'rollcall-live-'));
  service = await startService(stateDir);
  const { id, url } = await call('POST', '/v1/live');
  const client = await connect(url!);
  await client.stream(Array(20).fill(frameOf(0.3)), 50);
  expect(await call('GET', `/v1/live/${id}`)).toMatchObject({ status: 'running', completedAt: null });
  await service.killAll();
  expect((await client.closed).code).toBe(1006);

  service = await startService(stateDir, Number(new URL(service.url).port));
  await expect(connect(url!)).rejects.toThrow('401');
  // The alarm is due a minute after the stream began.
  await expect
    .poll(() => call('GET', `/v1/live/${id}`), { timeout: 120_000, interval: 1000 })
    .toMatchObject({ status: 'error', completedAt: expect.any(String) });
  const { run, close } = await openDatabase(stateDir, root);
  expect(await run('SELECT * FROM usage_records WHERE job_id = ?', id!)).toEqual([]);
  await close();
});
