import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { WaitingMessage } from './stuck-messages.ts';
import { type RestartReason, WATCHDOG_TIMES, Watchdog } from './watchdog.ts';

/** A runtime with answers set by the test. */
class FakeRuntime {
  answer: 'nothing' | 'error' | WaitingMessage[] = [];
  /** Milliseconds before each answer. */
  delayMs = 0;
  readonly resends: string[] = [];
  readonly restarts: RestartReason[] = [];
  onResend = (): void => {};

  probe(): Promise<WaitingMessage[]> {
    const { answer } = this;
    if (answer === 'nothing') return new Promise(() => {});
    if (answer === 'error') return Promise.reject(new Error('connection refused'));
    return new Promise((done) => setTimeout(() => done(answer), this.delayMs));
  }

  async resend(queue: string): Promise<void> {
    this.resends.push(queue);
    this.onResend();
  }

  restart(reason: RestartReason): void {
    this.restarts.push(reason);
  }
}

const plan = (id: string, state = '0 1'): WaitingMessage => ({ queue: 'ingest', id, state });
const shard = (id: string, state = '0 1'): WaitingMessage => ({ queue: 'jobs', id, state });

let runtime: FakeRuntime;
let ignored: Set<string>;
let watchdog: Watchdog;
const watch = (): void => {
  watchdog = new Watchdog(runtime, WATCHDOG_TIMES, ignored);
};
const pass = (seconds: number): Promise<unknown> => vi.advanceTimersByTimeAsync(seconds * 1000);
/** Advances the clock without firing timers, like the sleep of a laptop. */
const sleep = (seconds: number): void => void vi.setSystemTime(Date.now() + seconds * 1000);

beforeEach(() => {
  vi.useFakeTimers();
  runtime = new FakeRuntime();
  ignored = new Set();
  watch();
});
afterEach(() => {
  watchdog.end();
  vi.useRealTimers();
});

describe('a runtime that does not answer', () => {
  it.each(['nothing', 'error'] as const)('is restarted once after 60 s (answer: %s)', async (answer) => {
    await pass(300);
    runtime.answer = answer;
    await pass(59);
    expect(runtime.restarts).toEqual([]);
    await pass(600);
    expect(runtime.restarts).toEqual([{ kind: 'silence' }]);
  });

  it('is not restarted while it answers slowly', async () => {
    runtime.delayMs = 45_000;
    await pass(600);
    expect(runtime.restarts).toEqual([]);
  });

  it('has another 60 s after the machine slept', async () => {
    runtime.answer = 'nothing';
    await pass(50);
    sleep(3600);
    await pass(65);
    expect(runtime.restarts).toEqual([]);
    await pass(10);
    expect(runtime.restarts).toEqual([{ kind: 'silence' }]);
  });

  it('is not restarted after the watchdog has ended', async () => {
    runtime.answer = 'nothing';
    watchdog.end();
    await pass(600);
    expect(runtime.restarts).toEqual([]);
  });
});

describe('a queue', () => {
  it('causes a resend after 60 s without a change, and a restart 30 s later', async () => {
    runtime.answer = [plan('a'), plan('b')];
    runtime.onResend = () => {
      runtime.answer = [plan('a', '0 2'), plan('b', '0 2')]; // with new leases
    };
    await pass(69);
    expect(runtime.resends).toEqual([]);
    await pass(5);
    expect(runtime.resends).toEqual(['ingest']);
    await pass(25);
    expect(runtime.restarts).toEqual([]);
    await pass(10);
    expect(runtime.restarts).toEqual([{ kind: 'queue', queue: 'ingest' }]);
    expect(runtime.resends).toEqual(['ingest']);
  });

  it('causes no restart if the resend helps', async () => {
    runtime.answer = [plan('a'), plan('b')];
    runtime.onResend = () => {
      runtime.answer = [plan('b', '0 2')];
      setTimeout(() => (runtime.answer = []), 15_000);
    };
    await pass(300);
    expect(runtime.resends).toEqual(['ingest']);
    expect(runtime.restarts).toEqual([]);
  });

  it('causes no resend while it delivers messages', async () => {
    for (let round = 0; round < 20; round++) {
      runtime.answer = [plan(`job ${round}`), plan(`job ${round + 1}`), shard('long', `0 ${round}`)];
      await pass(50);
    }
    expect(runtime.resends).toEqual([]);
  });

  it('causes a resend 60 s after its last step ended', async () => {
    runtime.answer = [shard('a')];
    await pass(50);
    runtime.answer = []; // a step runs
    await pass(600);
    runtime.answer = [shard('a')];
    await pass(60);
    expect(runtime.resends).toEqual([]);
    await pass(15);
    expect(runtime.resends).toEqual(['jobs']);
  });

  it('has another 60 s after the machine slept', async () => {
    runtime.answer = [plan('a')];
    await pass(50);
    sleep(3600);
    await pass(55);
    expect(runtime.resends).toEqual([]);
    await pass(20);
    expect(runtime.resends).toEqual(['ingest']);
  });

  it('causes one restart for each message that a restart does not help', async () => {
    runtime.answer = [plan('unreadable')];
    await pass(120);
    expect(runtime.restarts).toHaveLength(1);
    watch();
    await pass(600);
    expect(runtime.restarts).toHaveLength(1);
    runtime.answer = [plan('unreadable'), plan('other')];
    await pass(120);
    expect(runtime.restarts).toHaveLength(2);
  });

  it('causes a restart when the resend does not end', async () => {
    runtime.answer = [plan('a')];
    runtime.resend = () => new Promise(() => {});
    await pass(200);
    expect(runtime.restarts).toEqual([{ kind: 'queue', queue: 'ingest' }]);
  });
});
