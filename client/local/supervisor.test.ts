import type { D1Database, R2Bucket } from '@cloudflare/workers-types';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { LocalRuntime, RuntimeEnd } from './local-runtime.ts';
import { Supervisor, type SupervisorOptions } from './supervisor.ts';
import { WATCHDOG_TIMES } from './watchdog.ts';

/** A runtime that a test can end or make unresponsive. */
class FakeRuntime implements LocalRuntime {
  readonly db = {} as D1Database;
  readonly bucket = {} as R2Bucket;
  answers = true;
  #settle: (reason: RuntimeEnd) => void = () => {};
  readonly ended = new Promise<RuntimeEnd>((done) => (this.#settle = done));
  readonly runScheduled = async (): Promise<string> => 'ok';

  waitingMessages(): Promise<never[]> {
    return this.answers ? Promise.resolve([]) : new Promise(() => {});
  }

  async end(reason: RuntimeEnd = 'ended'): Promise<void> {
    this.#settle(reason);
  }
}

let runtimes: FakeRuntime[];
let warnings: string[];
let givenUp: number;
let supervisor: Supervisor;
/** Starts a supervisor; a test may override its options. */
const supervise = (options: Partial<SupervisorOptions> = {}): Promise<void> => {
  supervisor = new Supervisor({
    async start() {
      runtimes.push(new FakeRuntime());
      return runtimes[runtimes.length - 1];
    },
    prepare: async () => {},
    resend: async () => {},
    times: WATCHDOG_TIMES,
    warn: (message) => warnings.push(message),
    onGivenUp: () => givenUp++,
    ...options,
  });
  return supervisor.start();
};
const last = (): FakeRuntime => runtimes[runtimes.length - 1];
const pass = (seconds: number): Promise<unknown> => vi.advanceTimersByTimeAsync(seconds * 1000);

beforeEach(() => {
  vi.useFakeTimers();
  runtimes = [];
  warnings = [];
  givenUp = 0;
});
afterEach(async () => {
  await supervisor.stop();
  vi.useRealTimers();
});

it('replaces a crashed runtime with a warning, and lets callers wait for the new one', async () => {
  await supervise();
  expect(await supervisor.ready()).toBe(runtimes[0]);
  await runtimes[0].end('crashed');
  await pass(0);
  const ready = supervisor.ready();
  await pass(1);
  expect(await ready).toBe(runtimes[1]);
  expect(warnings).toEqual([
    'warning: the local runtime (workerd) ended unexpectedly and is restarted. ' +
      'Jobs continue without loss. Live streams and open requests are disconnected.',
  ]);
});

it('gives up at the fourth crash within ten minutes', async () => {
  await supervise();
  for (let crash = 0; crash < 4; crash++) {
    expect(givenUp).toBe(0);
    await last().end('crashed');
    await pass(60);
  }
  expect([givenUp, runtimes.length]).toEqual([1, 4]);
});

it('does not give up if crashes are rare', async () => {
  await supervise();
  for (let crash = 0; crash < 10; crash++) {
    await last().end('crashed');
    await pass(300);
  }
  expect([givenUp, runtimes.length]).toEqual([0, 11]);
});

it('replaces a hanging runtime any number of times', async () => {
  await supervise();
  for (let round = 1; round <= 5; round++) {
    last().answers = false;
    await pass(90);
    expect(runtimes).toHaveLength(round + 1);
  }
  expect(givenUp).toBe(0);
  expect(warnings[0]).toContain('did not answer for 60 s and is restarted');
  expect(warnings).toHaveLength(5);
});

it('replaces a runtime in which a call blocked for too long', async () => {
  await supervise();
  await last().end('hung');
  await pass(1);
  expect(runtimes).toHaveLength(2);
  expect(warnings).toEqual([expect.stringContaining('did not answer for 60 s and is restarted')]);
});

it('repeats a restart that fails', async () => {
  let failures = 0;
  await supervise({
    async start() {
      if (runtimes.length === 1 && failures++ < 2) throw new Error('the port is taken');
      runtimes.push(new FakeRuntime());
      return last();
    },
  });
  await last().end('crashed');
  await pass(10);
  expect(await supervisor.ready()).toBe(runtimes[1]);
  expect(warnings.filter((text) => text.includes('did not start (the port is taken)'))).toHaveLength(2);
});

it('does not restart a runtime that ended shortly before the stop', async () => {
  await supervise();
  await last().end('crashed');
  await supervisor.stop();
  await pass(60);
  expect([warnings, givenUp, runtimes.length]).toEqual([[], 0, 1]);
});

describe('the first start', () => {
  it('throws the error of `prepare`', async () => {
    await expect(supervise({ prepare: () => Promise.reject(new Error('no model')) })).rejects.toThrow('no model');
  });

  it('restarts a runtime that hangs before it is ready', async () => {
    const prepare = async (runtime: LocalRuntime): Promise<void> => {
      if (runtimes.length > 1) return;
      runtimes[0].answers = false;
      await runtime.ended;
      throw new Error('connection lost');
    };
    const started = supervise({ prepare });
    await pass(90);
    await started;
    expect(await supervisor.ready()).toBe(runtimes[1]);
    expect(warnings).toEqual([expect.stringContaining('did not answer')]);
  });
});

it('aborts a start when it is stopped', async () => {
  await supervise({
    async start(signal) {
      runtimes.push(new FakeRuntime());
      if (runtimes.length === 1) return last();
      return new Promise((_done, refuse) => signal.addEventListener('abort', () => refuse(new Error('stopped'))));
    },
  });
  await last().end('crashed');
  await pass(10);
  expect(runtimes).toHaveLength(2);
  await supervisor.stop();
  expect(givenUp).toBe(0);
});
