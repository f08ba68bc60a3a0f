import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { localKey } from '../../client/cli/local-key.ts';
import { listProcesses } from '../../client/local/processes.ts';
import { type LocalService, startLocalService } from '../../client/local/service.ts';
import type { WatchdogTimes } from '../../client/local/watchdog.ts';
import { RollcallClient } from '../../client/sdk/client.ts';
import { conversation, startService } from '../helpers/local-process.ts';
import { loopMp3 } from '../helpers/mp3.ts';

const short = readFileSync(conversation);
/** Eleven minutes: three shards. */
const long = loopMp3(short, 12);

let stateDir: string;
let warnings: string[];
let service: LocalService | undefined;
let client: RollcallClient;
beforeEach(() => {
  stateDir = mkdtempSync(join(tmpdir(), 'rollcall-watchdog-'));
  warnings = [];
});
afterEach(async () => {
  await service?.stop();
  service = undefined;
  rmSync(stateDir, { recursive: true, force: true, maxRetries: 5 });
});

async function start(watchdogTimes: Partial<WatchdogTimes>): Promise<LocalService> {
  service = await startLocalService({ stateDir, watchdogTimes, onWarning: (message) => warnings.push(message) });
  client = new RollcallClient({ url: service.url, key: await localKey(service, stateDir) });
  return service;
}

async function createJob(audio: Uint8Array): Promise<string> {
  const url = await client.upload(`recording-${crypto.randomUUID()}`, audio);
  if (!url.ok) throw new Error(url.error.message);
  const job = await client.diarize({ url: url.value });
  if (!job.ok) throw new Error(job.error.message);
  return job.value.jobId;
}

/** The job's status when it is reached, or after `seconds`; failed polls are repeated while the runtime restarts. */
async function statusAfter(jobId: string, seconds: number, isReached = hasEnded): Promise<string> {
  let status = 'no answer';
  for (const deadline = Date.now() + seconds * 1000; Date.now() < deadline; ) {
    const job = await client.retrieve(jobId, AbortSignal.timeout(20_000));
    if (job.ok) status = job.value.status;
    if (isReached(status)) return status;
    await new Promise((wake) => setTimeout(wake, 500));
  }
  return status;
}
const hasEnded = (status: string): boolean => ['succeeded', 'failed'].includes(status);

function workerdOf({ port }: LocalService) {
  const found = listProcesses().find(({ command }) => command.includes(`--socket-addr=entry=127.0.0.1:${port} `));
  if (!found) throw new Error('no workerd');
  return found;
}

describe('a stopped workerd', () => {
  const times = { probe: 1000, silence: 15_000 };

  it('is restarted, and a running job succeeds', async () => {
    const service = await start(times);
    const jobId = await createJob(long);
    expect(await statusAfter(jobId, 120, (status) => status !== 'created')).toBe('running');
    const { pid } = workerdOf(service);
    process.kill(pid, 'SIGSTOP');
    await expect.poll(() => warnings, { timeout: 60_000 }).toHaveLength(1);
    expect(warnings[0]).toMatch(/^warning: the local runtime \(workerd\) did not answer for 15 s and is restarted\. /);
    expect(await statusAfter(jobId, 300)).toBe('succeeded');
    expect(workerdOf(service).pid).not.toBe(pid);
    expect(await service.db.prepare('SELECT COUNT(*) AS count FROM outbox').first('count')).toBe(0);
  });

  it('is restarted while a synchronous call to it blocks this process', async () => {
    const service = await start(times);
    process.kill(workerdOf(service).pid, 'SIGSTOP');
    expect(() => service.db.prepare('SELECT 1')).toThrow();
    await expect.poll(() => warnings, { timeout: 60_000 }).toHaveLength(1);
    expect(warnings[0]).toContain('did not answer for 15 s and is restarted');
    await service.runScheduled('*/5 * * * *'); // waits for the restart
    expect(await service.db.prepare('SELECT 1 AS one').first('one')).toBe(1);
  });

  it('does not prevent the service from stopping', async () => {
    const service = await start(times);
    process.kill(workerdOf(service).pid, 'SIGSTOP');
    await service.stop();
    expect(() => workerdOf(service)).toThrow('no workerd');
  });
});

describe('a queue that delivers no messages', () => {
  /** Stops the server that Miniflare's queues write their log to: each queue then fails at its next message. */
  function killQueues(service: LocalService): void {
    const port = Number(/--external-addr=loopback=127\.0\.0\.1:(\d+)/.exec(workerdOf(service).command)?.[1]);
    const handles = (process as unknown as { _getActiveHandles(): unknown[] })._getActiveHandles();
    const servers = handles.filter((handle) => handle instanceof Server);
    const server = servers.find((server) => (server.address() as { port?: number } | null)?.port === port);
    if (!server) throw new Error('no loopback server');
    server.close();
    (server as Server & { closeAllConnections(): void }).closeAllConnections();
  }

  it('gets its messages resent, then a new runtime, and the jobs succeed', async () => {
    const service = await start({ probe: 1000, queue: 8000, resend: 4000 });
    expect(await statusAfter(await createJob(short), 60)).toBe('succeeded');
    expect(warnings).toEqual([]);
    killQueues(service);
    const jobs = [await createJob(short), await createJob(short)];
    for (const jobId of jobs) expect(await statusAfter(jobId, 120)).toBe('succeeded');
    expect(warnings[0]).toMatch(/^warning: the queue "\w+" delivered no message for 8 s\. All outstanding messages/);
    expect(warnings.at(-1)).toMatch(/^warning: the queue "\w+" still delivers no message, so the local runtime/);
  });

  it('is distinguished from a queue of long recordings', async () => {
    await start({ probe: 1000, queue: 8000, resend: 4000 });
    const jobs = [await createJob(long), await createJob(long), await createJob(short)];
    for (const jobId of jobs) expect(await statusAfter(jobId, 400)).toBe('succeeded');
    expect(warnings).toEqual([]);
  });
});

describe('a suspended Node process, as on a sleeping laptop', () => {
  it('does not restart working queues', async () => {
    const service = await startService(stateDir);
    try {
      client = new RollcallClient(service);
      expect(await statusAfter(await createJob(short), 60)).toBe('succeeded');
      expect(await statusAfter(await createJob(short), 60)).toBe('succeeded');
      await new Promise((wake) => setTimeout(wake, 300));
      process.kill(service.pid, 'SIGSTOP');
      const meanwhile = await createJob(short);
      await new Promise((wake) => setTimeout(wake, 10_000));
      process.kill(service.pid, 'SIGCONT');
      await new Promise((wake) => setTimeout(wake, 3000));
      const jobs = [meanwhile, await createJob(short), await createJob(short)];
      for (const jobId of jobs) expect(await statusAfter(jobId, 60)).toBe('succeeded');
      expect(service.log()).not.toContain('warning: ');
    } finally {
      await service.killAll();
    }
  });
});
