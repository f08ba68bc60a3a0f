import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { changeAccount } from '../../client/account-settings.ts';
import { openDatabase } from '../../client/local/database.ts';
import { findProcess } from '../../client/local/processes.ts';
import { RollcallClient } from '../../client/sdk/client.ts';
import type { JobState } from '../../client/sdk/types.ts';
import { conversation, type RunningService, root, startService } from '../helpers/local-process.ts';
import { loopMp3 } from '../helpers/mp3.ts';
import { startReceiver } from '../helpers/webhook-receiver.ts';

/** Eleven minutes: three shards. */
const recording = loopMp3(readFileSync(conversation), 12);
/** These tests poll their jobs more often than the default limit allows. */
const POLLS_PER_MINUTE = 10_000;
/** Output bytes of an undisturbed run. */
let expected: string;

let stateDir: string;
let service: RunningService;
let receiver: Awaited<ReturnType<typeof startReceiver>> | undefined;

async function start(port = 0): Promise<RunningService> {
  service = await startService(stateDir, port);
  const { run, close } = await openDatabase(stateDir, root);
  await changeAccount(run, 'local', { getLimit: POLLS_PER_MINUTE });
  await close();
  return service;
}

/** Starts the service again with the same folder and port, as after a crash. */
const restart = (): Promise<RunningService> => start(Number(new URL(service.url).port));

function client(): RollcallClient {
  return new RollcallClient(service);
}

async function createJob(webhook?: string): Promise<string> {
  const url = await client().upload('recording', recording);
  if (!url.ok) throw new Error(url.error.message);
  const job = await client().diarize({ url: url.value, webhook, exclusive: true, turnLevelConfidence: true });
  if (!job.ok) throw new Error(job.error.message);
  return job.value.jobId;
}

async function outputBytes(jobId: string): Promise<string> {
  const response = await fetch(`${service.url}/v1/jobs/${jobId}`, {
    headers: { Authorization: `Bearer ${service.key}` },
  });
  const text = await response.text();
  return text.slice(text.indexOf('"output":'));
}

/** Polls until the job's progress reaches `fraction` or the job has ended. */
async function reach(jobId: string, fraction: number): Promise<JobState> {
  for (;;) {
    const job = await client().retrieve(jobId);
    if (!job.ok) throw new Error(job.error.message);
    if (job.value.status === 'succeeded' || job.value.status === 'failed') return job.value;
    if ((job.value.progress ?? 0) >= fraction) return job.value;
    await new Promise((wake) => setTimeout(wake, 50));
  }
}

async function finish(jobId: string): Promise<JobState> {
  const job = await client().wait(jobId);
  if (!job.ok) throw new Error(job.error.message);
  return job.value;
}

async function usageRows(jobId: string): Promise<unknown[]> {
  const { run, close } = await openDatabase(stateDir, root);
  try {
    return await run('SELECT kind, billed_seconds FROM usage_records WHERE job_id = ?', jobId);
  } finally {
    await close();
  }
}

async function stopAll(): Promise<void> {
  if (service && (findProcess(service.pid) || service.workerdPids().length > 0)) await service.killAll();
  await receiver?.close();
  receiver = undefined;
  rmSync(stateDir, { recursive: true, force: true, maxRetries: 5 });
}

const newState = (): string => mkdtempSync(join(tmpdir(), 'rollcall-recovery-'));

beforeAll(async () => {
  stateDir = newState();
  await start();
  const jobId = await createJob();
  expect((await finish(jobId)).status).toBe('succeeded');
  expected = await outputBytes(jobId);
  await stopAll();
}, 600_000);

beforeEach(() => {
  stateDir = newState();
});
afterEach(stopAll);
afterAll(stopAll);

describe('a job of several shards', () => {
  it('completes once after kill -9 of the whole service at five points', async () => {
    receiver = await startReceiver();
    await start();
    const jobId = await createJob(receiver.url);
    await service.killAll();
    const reached: number[] = [];
    for (const fraction of [0.05, 0.4, 0.75, 0.95]) {
      await restart();
      const job = await reach(jobId, fraction);
      reached.push(job.progress ?? 1);
      await service.killAll();
    }
    await restart();
    expect(await finish(jobId)).toMatchObject({ status: 'succeeded' });
    expect(await outputBytes(jobId)).toBe(expected);
    // The kills interrupted the job.
    expect(reached.filter((progress) => progress < 1).length).toBeGreaterThanOrEqual(3);
    expect(await usageRows(jobId)).toHaveLength(1);
    await expect.poll(() => receiver?.received.length, { timeout: 30_000 }).toBe(1);
    expect(receiver.received[0]).toMatchObject({ answered: 200, body: { jobId, status: 'succeeded' } });
  });

  it('completes once when only the parent process is killed and workerd survives', async () => {
    receiver = await startReceiver();
    await start();
    const jobId = await createJob(receiver.url);
    await reach(jobId, 0.3);
    await service.killParent();
    await restart();
    expect(await finish(jobId)).toMatchObject({ status: 'succeeded' });
    expect(await outputBytes(jobId)).toBe(expected);
    expect(await usageRows(jobId)).toHaveLength(1);
    await expect.poll(() => receiver?.received.length, { timeout: 30_000 }).toBe(1);
  });

  it('delivers its webhook after a kill during the delivery, and bills once', async () => {
    let entered: () => void = () => {};
    const first = new Promise<void>((done) => {
      entered = done;
    });
    receiver = await startReceiver(async (count) => {
      if (count > 1) return 200;
      entered();
      await new Promise((wake) => setTimeout(wake, 8000)); // longer than the kill takes
      return 200;
    });
    await start();
    const jobId = await createJob(receiver.url);
    await first;
    await service.killAll();
    await restart();
    await expect
      .poll(() => receiver?.received.filter(({ answered }) => answered === 200).length, { timeout: 60_000 })
      .toBe(1);
    expect((await finish(jobId)).status).toBe('succeeded');
    expect(await outputBytes(jobId)).toBe(expected);
    expect(await usageRows(jobId)).toHaveLength(1);
  });
});
