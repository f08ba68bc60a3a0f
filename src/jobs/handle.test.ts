import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { SourceReadError } from '../platform/sources/errors.ts';
import { handleMessage, MAX_DELIVERIES } from './handle.ts';
import { Mutex } from './mutex.ts';
import { PlanMemory } from './plan-memory.ts';
import type { JobPorts } from './ports.ts';

const MESSAGE = { step: 'shard', jobId: 'job', shard: 3 } as const;

/** A running job whose source fails while a shard is read. */
async function delivered(kind: string, attempt: number) {
  const failed: { code: string; message: string }[] = [];
  let lease = 0;
  const ports = {
    store: {
      recordStart: async () => {},
      find: async () => ({ id: 'job', status: 'running' }),
      renewLease: async (_id: string, until: number) => {
        lease = until;
      },
      fail: async (_id: string, error: { code: string; message: string }) => {
        failed.push(error);
        return false;
      },
    },
    objects: {
      exists: async (key: string) => key.includes('plan'),
      get: async () => {
        throw new SourceReadError({ kind, message: 'The server example.org stopped sending.' } as never);
      },
    },
    pause: async () => {},
    sleep: async () => {},
    log: () => {},
    now: () => 1000,
    work: 'v',
    plans: new PlanMemory(),
  } as unknown as JobPorts;
  const verdict = await handleMessage(ports, new Mutex(() => 0), MESSAGE, attempt);
  return { verdict, failed, lease };
}

describe('a source that fails while a job runs', () => {
  it('is asked again after ever longer pauses, in which the message is not sent a second time', async () => {
    const pauses: number[] = [];
    for (let attempt = 1; attempt < MAX_DELIVERIES; attempt++) {
      const { verdict, failed, lease } = await delivered('timeout', attempt);
      expect(failed).toEqual([]);
      if (verdict.kind !== 'retry') throw new Error('no other try');
      pauses.push(verdict.delaySeconds);
      expect(lease).toBeGreaterThan(1000 + verdict.delaySeconds * 1000);
    }
    expect(pauses).toEqual([15, 30, 60, 120]);
  });

  it('fails the job with its own reason at the last try, not as a fault of the service', async () => {
    for (const kind of ['timeout', 'unreachable', 'server_error']) {
      const { verdict, failed } = await delivered(kind, MAX_DELIVERIES);
      expect(verdict).toEqual({ kind: 'done' });
      expect(failed).toEqual([{ code: `source_${kind}`, message: 'The server example.org stopped sending.' }]);
    }
  });

  it('fails it at once where no other try can help', async () => {
    for (const kind of ['changed', 'incomplete', 'private_address', 'too_many_redirects', 'invalid_url']) {
      expect((await delivered(kind, 1)).failed).toMatchObject([{ code: `source_${kind}` }]);
    }
  });
});

it('the queues deliver as often as the last try expects', () => {
  const config = readFileSync(new URL('../../wrangler.toml', import.meta.url), 'utf8');
  const [, retries] = /queue = "rollcall-jobs"\nmax_batch_size = 1\n(?:.*\n)?max_retries = (\d+)/.exec(config) ?? [];
  expect(Number(retries) + 1).toBe(MAX_DELIVERIES);
});

describe('a part that is there', () => {
  async function handled(progress: Partial<JobPorts['progress']>) {
    const settled: string[] = [];
    const ports = {
      store: {
        recordStart: async () => {},
        find: async () => ({ id: 'job', status: 'running' }),
        settle: async (id: string) => void settled.push(id),
      },
      objects: { exists: async () => true },
      progress,
      log: () => {},
      now: () => 1000,
      work: 'v',
      plans: new PlanMemory(),
    } as unknown as JobPorts;
    return { verdict: await handleMessage(ports, new Mutex(() => 0), MESSAGE, 1), settled };
  }

  it('is settled once it is counted', async () => {
    expect(await handled({ partDone: async () => true })).toEqual({
      verdict: { kind: 'done' },
      settled: ['job/shard/3'],
    });
  });

  it('is not settled where another version of the counter left it out: the job ran for ever', async () => {
    expect(await handled({ partDone: async () => false })).toEqual({ verdict: { kind: 'done' }, settled: [] });
  });
});

it('an assembly that comes before all parts are there is asked for again by the last of them, and fails no job', async () => {
  const settled: string[] = [];
  const stored = { plan: { index: { channels: 1 }, totalSamples: 16_000, shards: [{}, {}] } };
  const waiting = new Set(['job/shard/1']);
  const ports = {
    store: {
      recordStart: async () => {},
      find: async () => ({ id: 'job', status: 'running', kind: 'diarize', request: { model: 'community-1' } }),
      settle: async (id: string) => void settled.push(id),
      outboxRow: async (id: string) => (waiting.has(id) ? {} : undefined),
    },
    objects: {
      exists: async (key: string) => key.includes('plan') || key.endsWith('00000'),
      get: async () => new TextEncoder().encode(JSON.stringify(stored.plan)),
      getRange: async (key: string) => {
        throw new Error(`object ${key} is gone`);
      },
    },
    pause: async () => {},
    sleep: async () => {},
    log: () => {},
    now: () => 1000,
    work: 'v',
    plans: new PlanMemory(),
  } as unknown as JobPorts;
  const message = { step: 'assemble', jobId: 'job' } as const;
  expect(await handleMessage(ports, new Mutex(() => 0), message, 1)).toEqual({ kind: 'done' });
  expect(settled).toEqual(['job/assemble']);
  waiting.clear();
  expect(await handleMessage(ports, new Mutex(() => 0), message, 1)).toMatchObject({ kind: 'retry' });
});
