import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { SourceReadError } from '../platform/sources/errors.ts';
import { MAX_STARTS } from './dispatch.ts';
import { handleDeadLetter, handleMessage, MAX_DELIVERIES } from './handle.ts';
import { createPulse, JobGone } from './lease.ts';
import type { Message } from './messages.ts';
import { outboxId } from './messages.ts';
import { Mutex } from './mutex.ts';
import { PlanMemory } from './plan-memory.ts';
import type { JobPorts, OutboxRow, Queued } from './ports.ts';
import { resendLost } from './resend.ts';

const MESSAGE = { step: 'shard', jobId: 'job', shard: 3 } as const;

/** A job whose source fails while a shard is read, or while it is planned, or the service's own storage. */
async function delivered(kind: string, attempt: number, message: Message = MESSAGE) {
  const failed: { code: string; message: string }[] = [];
  let lease = 0;
  const ports = {
    store: {
      recordStart: async () => {},
      find: async () => ({ id: 'job', status: message.step === 'plan' ? 'created' : 'running' }),
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
        if (kind === 'own') throw new Error('get: We encountered an internal error. Please try again. (10001)');
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
  const verdict = await handleMessage(ports, new Mutex(() => 0), message, attempt);
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
    for (const kind of [
      'changed',
      'incomplete',
      'http_status',
      'empty',
      'private_address',
      'too_many_redirects',
      'invalid_url',
    ]) {
      expect((await delivered(kind, 1)).failed).toMatchObject([{ code: `source_${kind}` }]);
    }
  });
});

it('a source that is too slow fails its plan at once, and a shard, which shares the server with others, at the last try', async () => {
  const plan = { step: 'plan', jobId: 'job' } as const;
  expect((await delivered('too_slow', 1, plan)).failed).toMatchObject([{ code: 'source_too_slow' }]);
  expect(await delivered('too_slow', 1)).toMatchObject({ verdict: { kind: 'retry', delaySeconds: 15 }, failed: [] });
  expect((await delivered('too_slow', MAX_DELIVERIES)).failed).toMatchObject([{ code: 'source_too_slow' }]);
});

it('storage that is away is asked again soon, and then for nearly three minutes: half a minute of it failed jobs', async () => {
  const pauses: number[] = [];
  for (let attempt = 1; attempt < MAX_DELIVERIES; attempt++) {
    const { verdict, failed, lease } = await delivered('own', attempt);
    expect(failed).toEqual([]);
    if (verdict.kind !== 'retry') throw new Error('no other try');
    pauses.push(verdict.delaySeconds);
    expect(lease).toBeGreaterThan(1000 + verdict.delaySeconds * 1000);
  }
  expect(pauses).toEqual([2, 8, 32, 128]);
});

it('the queues deliver as often as the last try expects', () => {
  const config = readFileSync(new URL('../../wrangler.toml', import.meta.url), 'utf8');
  const [, retries] = /queue = "rollcall-jobs"\nmax_batch_size = 1\n(?:.*\n)?max_retries = (\d+)/.exec(config) ?? [];
  expect(Number(retries) + 1).toBe(MAX_DELIVERIES);
});

it('batches that wait for others leave one of the six connections of an invocation free: hanging receivers kept others from being asked', () => {
  const config = readFileSync(new URL('../../wrangler.toml', import.meta.url), 'utf8');
  const sizes = [...config.matchAll(/queue = "rollcall-(?:plans|webhooks)"\nmax_batch_size = (\d+)/g)].map(([, size]) =>
    Number(size),
  );
  expect(sizes).toHaveLength(2);
  expect(Math.max(...sizes)).toBeLessThan(6);
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

it('steps that find no plan of this version have one message plan their job anew: each of hundreds asked the server of the recording, and began all parts', async () => {
  const sent: Message[] = [];
  const verdicts: unknown[] = [];
  let isRequested = false;
  const ports = {
    store: {
      recordStart: async () => {},
      find: async () => ({ id: 'job', status: 'running', request: { url: 'https://example.org/a.wav' } }),
      requestPlan: async () => {
        const isFirst = !isRequested;
        isRequested = true;
        return isFirst;
      },
      renewLease: async () => {},
    },
    objects: { exists: async () => false, get: async () => undefined },
    sources: {
      resolve: async () => {
        throw new Error('the source was asked');
      },
    },
    queue: { send: async (message: Message) => void sent.push(message) },
    log: () => {},
    now: () => 1000,
    work: 'v',
    plans: new PlanMemory(),
  } as unknown as JobPorts;
  const shards = Array.from({ length: 200 }, (_, shard) => ({ step: 'shard', jobId: 'job', shard }) as const);
  const deliver = async (message: Message) => {
    verdicts.push(await handleMessage(ports, new Mutex(() => 0), message, 1));
  };
  await Promise.all([...shards, { step: 'assemble', jobId: 'job' } as const].map(deliver));
  expect(sent).toEqual([{ step: 'plan', jobId: 'job' }]);
  expect(new Set(verdicts.map((verdict) => JSON.stringify(verdict)))).toEqual(new Set(['{"kind":"done"}']));
});

it('an assembly that comes before all parts are there is asked for again by the last of them, and fails no job', async () => {
  const settled: string[] = [];
  const stored = { plan: { index: { channels: 1 }, totalSamples: 16_000, shards: [{}, {}] } };
  const waiting = new Set(['job/shard/1']);
  const ports = {
    store: {
      recordStart: async () => {},
      find: async () => ({ id: 'job', status: 'running', kind: 'diarize', request: { model: 'community-1' } }),
      settleEarly: async (id: string) => void settled.push(id),
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
  expect(settled).toEqual(['job']);
});

describe('a database that is away for a minute', () => {
  const JOB = { id: 'job', accountId: 'a', webhookUrl: 'https://example.org', webhookStatusOnly: true, createdAt: 0 };

  /** A job with one message outstanding, and a database that can be switched off. */
  function world(message: Message, status: string) {
    const row = { id: outboxId(message), message, dueAt: 0, leaseUntil: 900_000, starts: 0 };
    const state = { isAway: false, now: 0, posts: 0, row: row as OutboxRow | undefined, sent: [] as Message[] };
    const failed: string[] = [];
    const d1 =
      <A extends unknown[], R>(ask: (...parameters: A) => R) =>
      async (...parameters: A) => {
        if (state.isAway) throw new Error('D1_ERROR: Network connection lost.');
        return ask(...parameters);
      };
    const change = (changes: Partial<OutboxRow>) => {
      if (state.row) state.row = { ...state.row, ...changes };
    };
    const ports = {
      store: {
        outboxRow: d1(() => state.row),
        find: d1(() => ({ ...JOB, status, updatedAt: 0, completedAt: 0 })),
        recordStart: d1((_id: string, leaseUntil: number) => change({ starts: state.row!.starts + 1, leaseUntil })),
        renewLease: d1((_id: string, leaseUntil: number) => change({ leaseUntil })),
        renewLeases: d1((leases: readonly { leaseUntil: number }[]) => leases.map(change)),
        overdue: d1((before: number) => ({ rows: state.row && state.row.leaseUntil < before ? [state.row] : [] })),
        webhookSecretVersions: d1(() => [1]),
        settle: d1(() => {
          state.row = undefined;
        }),
        fail: d1((_id: string, { code }: { code: string }) => {
          failed.push(code);
          return false;
        }),
      },
      webhook: {
        post: async () => {
          state.posts++;
          return { ok: true, value: { status: 204 } };
        },
      },
      webhookSecret: async () => 'secret',
      queue: {
        send: async (sent: Message) => void state.sent.push(sent),
        sendAll: async (queued: readonly Queued[]) => void state.sent.push(...queued.map(({ message }) => message)),
      },
      objects: {
        get: async () => {
          throw new Error('damaged');
        },
      },
      pause: async () => {},
      sleep: async () => {},
      now: () => state.now,
      log: () => {},
      outputTtlMs: 1,
      work: 'v',
    } as unknown as JobPorts;
    const deliver = async () => {
      for (let attempt = 1; attempt <= MAX_DELIVERIES; attempt++) {
        await handleMessage(ports, new Mutex(() => 0), message, attempt).catch(() => undefined);
      }
    };
    return { state, ports, failed, deliver };
  }

  it('a webhook whose five deliveries met a database that was away is delivered by the sweep', async () => {
    const message = { step: 'webhook', jobId: 'job', attempt: 0 } as const;
    const { state, ports, deliver } = world(message, 'succeeded');
    state.isAway = true;
    await deliver();
    state.isAway = false;
    await handleDeadLetter(ports, message);
    expect(state.row).toBeDefined();
    state.now = 61_000;
    expect(await resendLost(ports, state.now)).toBe(1);
    expect(state.sent).toEqual([message]);
    await handleMessage(ports, new Mutex(() => 0), message, 1);
    expect([state.posts, state.row]).toEqual([1, undefined]);
  });

  it('a webhook that can never be sent is given up in the end', async () => {
    const message = { step: 'webhook', jobId: 'job', attempt: 0 } as const;
    const { state, ports, deliver } = world(message, 'succeeded');
    Object.assign(ports, { webhookSecret: () => Promise.reject(new Error('broken')) });
    for (let round = 0; state.row && round < 10; round++) {
      await deliver();
      await handleDeadLetter(ports, message);
      expect(state.row.starts).toBeLessThanOrEqual(MAX_STARTS);
      state.now += 61_000;
      await resendLost(ports, state.now);
    }
    expect([state.posts, state.row]).toEqual([0, undefined]);
  });

  it('a step that was never begun goes on, and one that fails by itself fails its job', async () => {
    const message = { step: 'plan', jobId: 'job' } as const;
    const { state, ports, failed, deliver } = world(message, 'created');
    state.isAway = true;
    await deliver();
    state.isAway = false;
    await handleDeadLetter(ports, message);
    expect(failed).toEqual([]);
    state.now = 61_000;
    expect(await resendLost(ports, state.now)).toBe(1);
    await deliver();
    await handleDeadLetter(ports, message);
    expect(failed).toEqual(['internal']);
  });

  it('a dead letter whose row is gone fails no job', async () => {
    const message = { step: 'plan', jobId: 'job' } as const;
    const { state, ports, failed } = world(message, 'running');
    state.row = undefined;
    await handleDeadLetter(ports, message);
    expect(failed).toEqual([]);
  });

  it('a dead copy of a webhook does not take its next attempt with it', async () => {
    const { state, ports } = world({ step: 'webhook', jobId: 'job', attempt: 2 }, 'succeeded');
    await handleDeadLetter(ports, { step: 'webhook', jobId: 'job', attempt: 0 });
    expect(state.row).toMatchObject({ leaseUntil: 900_000 });
  });

  it('one failed look at the job does not end an analysis', async () => {
    const { state, ports } = world(MESSAGE, 'running');
    const pulse = createPulse(ports, 'job', 'job/shard/3');
    state.isAway = true;
    state.now = 20_000;
    await pulse();
    state.isAway = false;
    state.now = 40_000;
    await pulse();
    expect(state.row?.leaseUntil).toBe(100_000);
    const ended = world(MESSAGE, 'canceled');
    const endedPulse = createPulse(ended.ports, 'job', 'job/shard/3');
    ended.state.now = 20_000;
    await expect(endedPulse()).rejects.toBeInstanceOf(JobGone);
  });
});
