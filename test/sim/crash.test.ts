import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';

/**
 * Runs jobs on machines that die at any moment, with queues that lose and repeat messages, a database and a bucket
 * whose answers get lost, and slow, faulty servers. Steps, database, bucket and the class of the jobs' objects are
 * real. Queues, servers, receivers and time are simulated with random numbers from a seed, so that a seed always gives
 * the same events. Faults end after half an hour. An hour later every job must have ended once, be billed once if it
 * succeeded, have sent its webhook and have left no data.
 *
 *     SIM_SEEDS=1-150 npx vitest run test/sim    other seeds than the fixed ones, with a line about each
 *     SIM_KILL=store.restart                     with SIM_SEEDS: the first invocation that makes this call dies
 *     SIM_DEPLOY=1                               with SIM_SEEDS: always a deployment, otherwise in 40 % of the seeds
 *     SIM_LOG=1                                  the complete log of each
 */

// Some modules keep a reference to Date.now when they are loaded.
const clock = vi.hoisted(() => {
  const simulated: { now: (() => number) | undefined } = { now: undefined };
  const machine = Date.now;
  Date.now = () => simulated.now?.() ?? machine();
  return simulated;
});
vi.mock('../../src/audio/audio-ports.ts', async (original) => ({
  ...(await original<object>()),
  SAMPLE_RATE_HZ: (await import('./rate.ts')).RATE_HZ,
}));
vi.mock('../../src/audio/memory.ts', async (original) => ({ ...(await original<object>()), release: () => {} }));
vi.mock('../../src/audio/recording.ts', async (original) => ({
  ...(await original<object>()),
  Recording: (await import('./doubles.ts')).Recording,
}));
vi.mock('../../src/diarization/part.ts', async (original) => ({
  ...(await original<object>()),
  encodePart: (await import('./doubles.ts')).diarization.encodePart,
}));
vi.mock('../../src/diarization/shard.ts', async (original) => ({
  ...(await original<object>()),
  analyseShard: (await import('./doubles.ts')).diarization.analyseShard,
}));
vi.mock('../../src/jobs/webhook-signature.ts', async (original) => ({
  ...(await original<object>()),
  ...(await import('./doubles.ts')).signature,
}));
vi.mock('../../src/jobs/results.ts', async () => (await import('./doubles.ts')).results);
vi.mock('../../src/platform/sources/copy.ts', async () => (await import('./doubles.ts')).copy);
vi.mock('../../src/services-jobs.ts', async () => (await import('./doubles.ts')).services);
vi.mock('cloudflare:workers', async () => (await import('./doubles.ts')).workers);

import type { CreateJob } from '../../src/jobs/app-services.ts';
import { createJob } from '../../src/jobs/create-job.ts';
import { RUNS_ALL_CASES } from '../helpers/cases.ts';
import { type Storage, startStorage } from '../helpers/storage.ts';
import { CREDIT_SECONDS, checkInvariants } from './invariants.ts';
import { ACCOUNT, run, runNextDay } from './scenario.ts';
import { DAY, MINUTE } from './timeline.ts';
import { World } from './world.ts';

interface Case {
  readonly seed: number;
  readonly kill?: string;
  readonly isDeployed?: boolean;
}

const { SIM_SEEDS, SIM_KILL, SIM_DEPLOY, SIM_LOG } = process.env;
const FIXED_CASES: readonly Case[] = [
  // With seed 63 a success races a cancel.
  ...[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 63].map((seed) => ({ seed })),
  // Both versions receive messages: parts of the new one must be counted, whichever began or finished first.
  ...[13, 50, 55].map((seed) => ({ seed, isDeployed: true })),
  // Only the alarm of the job's object continues the job after this death.
  { seed: 24, kill: 'store.nextStep', isDeployed: true },
  { seed: 3, kill: 'store.start' },
  { seed: 3, kill: 'objects.replace' },
  { seed: 115, kill: 'store.reserve' },
  { seed: 3, kill: 'store.finishIngest' },
  { seed: 3, kill: 'progress.expect' },
  { seed: 3, kill: 'progress.startShard' },
  { seed: 3, kill: 'progress.partDone' },
  { seed: 3, kill: 'copies.request' },
  { seed: 3, kill: 'bucket.put' },
  { seed: 3, kill: 'store.succeed' },
];
const START = Date.UTC(2030, 0, 1);
/** A case takes two seconds, on a busy machine much longer. */
const CASE_TIMEOUT_MS = 90_000;
const LOG_TAIL = 60;
const LEASE_RENEWAL_MS = 10_000;
const MUTEX_POLL_MS = 50;
const SILENCE_POLL_MS = 1000;
/** Limit for a long job, faults included. */
const LONG_MS = 90 * MINUTE;
const SHARD_SECONDS = 300;

function cases(): readonly Case[] {
  if (SIM_SEEDS === undefined) return FIXED_CASES.filter((_, index) => RUNS_ALL_CASES || index % 5 === 0);
  const [first, last = first] = SIM_SEEDS.split('-').map(Number);
  const isDeployed = SIM_DEPLOY !== undefined;
  return Array.from({ length: last - first + 1 }, (_, i) => ({ seed: first + i, kill: SIM_KILL, isDeployed }));
}

let storage: Storage;
let caseCount = 0;
beforeAll(async () => {
  storage = await startStorage();
});
afterAll(() => storage?.stop());
afterEach(() => {
  vi.unstubAllGlobals();
  clock.now = undefined;
});

async function worldOf({ seed, kill }: Case): Promise<World> {
  await storage.empty();
  await storage.db
    .prepare(`INSERT INTO accounts (id, name, credit_seconds, subscribed, created_at) VALUES (?1, ?1, ?2, 0, 0)`)
    .bind(ACCOUNT, CREDIT_SECONDS)
    .run();
  // Modules may hold a lock from a case before: each case starts two days later, so that such locks have expired and
  // a seed does not depend on earlier cases.
  const world = new World(seed, storage, START + 2 * DAY * caseCount++, kill);
  clock.now = () => world.time.now;
  simulateTimers(world);
  return world;
}

/**
 * Simulates the timers of steps: renewal of leases and polls for silence while they wait for the network, and polls of
 * the mutex while they wait for their slot in the isolate.
 */
function simulateTimers({ time }: World): void {
  const { setInterval, clearInterval, setTimeout } = globalThis;
  const running = new Set<unknown>();
  vi.stubGlobal('setTimeout', (run: () => void, ms?: number, ...args: unknown[]) => {
    if (ms !== MUTEX_POLL_MS) return setTimeout(run, ms, ...args);
    time.after(ms, run);
    return {};
  });
  vi.stubGlobal('setInterval', (tick: () => void, ms: number) => {
    if (ms !== LEASE_RENEWAL_MS && ms !== SILENCE_POLL_MS) return setInterval(tick, ms);
    const handle = {};
    running.add(handle);
    const next = () =>
      time.after(ms, () => {
        if (!running.has(handle)) return;
        tick();
        next();
      });
    next();
    return handle;
  });
  vi.stubGlobal('clearInterval', (handle: Parameters<typeof clearInterval>[0]) => {
    if (!running.delete(handle)) clearInterval(handle);
  });
}

const nameOf = ({ seed, kill, isDeployed }: Case): string =>
  `seed ${seed}${kill ? `, death in ${kill}` : ''}${isDeployed ? ', a deployment' : ''}`;

describe('every job ends once, is billed once, sends its webhook and leaves no data', () => {
  it.each(cases().map((simulation) => [nameOf(simulation), simulation] as const))(
    '%s',
    async (name, simulation) => {
      const world = await worldOf(simulation);
      const calls = await run(world, simulation.isDeployed ?? false);
      const { violations, summary } = await checkInvariants(world, calls, () => runNextDay(world));
      const { log } = world.time;
      if (SIM_SEEDS !== undefined) console.log(`${name}: ${summary}${world.faults.hasKilled ? '; killed' : ''}`);
      if (SIM_LOG !== undefined) console.log(log.join('\n'));
      if (violations.length > 0)
        throw new Error([`${name}: ${violations.join('\n')}`, summary, ...log.slice(-LOG_TAIL)].join('\n'));
      // A fixed case must reach its kill, or it tests nothing.
      if (SIM_SEEDS === undefined) expect(world.faults.hasKilled).toBe(simulation.kill !== undefined);
    },
    CASE_TIMEOUT_MS,
  );
});

describe.runIf(RUNS_ALL_CASES)('a long job', () => {
  const url = 'https://example.com/day.wav';
  const id = 'long';

  /** Runs one job to its end; `inject` may plan faults first. */
  async function runJob(shards: number, inject: (world: World) => void = () => undefined) {
    const world = await worldOf({ seed: 4 });
    const { time, faults } = world;
    faults.isOn = false;
    const seconds = shards * SHARD_SECONDS;
    world.recordings.set(url, { behaviour: 'plain', seconds: [seconds], changesAt: [], sampleRateHz: 44_100 });
    // The recording is in the request, so that its bytes arrive immediately, as those of an upload do.
    const call = { id, url, isInline: true, webhook: 'https://example.com/hook' };
    const request = { url: `data:${encodeURIComponent(url)}`, model: 'precision-2', webhook: call.webhook };
    inject(world);
    const statements = storage.counts.statements;
    void createJob(
      world.portsFor('create'),
      { accountId: ACCOUNT, kind: 'diarize', request } as unknown as CreateJob,
      id,
    );
    let polls = 0;
    const state = async () => {
      polls++;
      return (await storage.db.prepare('SELECT status FROM jobs').first<{ status: string }>())?.status;
    };
    while (time.now < time.start + LONG_MS && (await state()) !== 'succeeded') await time.runUntil(time.now + MINUTE);
    const minutes = (time.now - time.start) / MINUTE;
    // Time for its webhook.
    await time.runUntil(time.now + MINUTE);
    const cost = costOf(faults.calls, storage.counts.statements - statements - polls);
    return { world, cost, minutes, ...(await checkInvariants(world, [call], () => runNextDay(world))) };
  }

  it('of 288 shards survives ten minutes without D1, ten without R2, and killed consumers', async () => {
    const { violations, summary, minutes, world } = await runJob(288, (running) => {
      const { time, faults } = running;
      for (let ms = 5 * MINUTE; ms < LONG_MS; ms += 5 * MINUTE) time.after(ms, () => running.sweep());
      const disable = (fromMinute: number, toMinute: number, calls: readonly string[]) => {
        time.after(fromMinute * MINUTE, () => calls.map((name) => faults.unavailable.add(name)));
        time.after(toMinute * MINUTE, () => calls.map((name) => faults.unavailable.delete(name)));
      };
      disable(1, 11, ['store.']);
      disable(12, 22, ['objects.', 'bucket.']);
      time.after(22 * MINUTE, () => faults.hanging.set('objects.getRange', 6));
    });
    const { log } = world.time;
    if (violations.length > 0) throw new Error([...violations, summary, ...log.slice(-LOG_TAIL)].join('\n'));
    for (const pattern of [/AWAY store/, /AWAY objects/, /HANGS objects.getRange of shard/, /DIES shard/])
      expect(
        log.some((line) => pattern.test(line)),
        String(pattern),
      ).toBe(true);
    expect(summary).toMatch(/^succeeded; 288 parts$/);
    expect(minutes).toBeLessThan(LONG_MS / MINUTE);
  }, 600_000);

  it('needs a bounded number of D1, R2 and object operations', async () => {
    const costs = [];
    for (const shards of [1, 12, 36, 288]) {
      const { violations, cost } = await runJob(shards);
      expect(violations).toEqual([]);
      costs.push({ shards, ...cost });
    }
    if (SIM_LOG !== undefined) console.table(costs);
    const [short, hour, hours, day] = costs;
    // Three of them by the message of an assembly that the last shard has done.
    expect(short!.d1Statements).toBeLessThanOrEqual(33);
    expect(hour!.d1Statements).toBeLessThanOrEqual(short!.d1Statements + 45);
    expect(hours!.d1Statements).toBeLessThanOrEqual(short!.d1Statements + 80);
    expect(day!.d1Statements).toBeLessThanOrEqual(short!.d1Statements + 420);
    for (const { shards, objectRequests, r2Operations } of costs) {
      expect(objectRequests).toBeLessThanOrEqual(4 * shards + 12);
      expect(r2Operations).toBeLessThanOrEqual(14 * shards + 24);
    }
  }, 600_000);
});

/** Operations of a job on the platform. */
function costOf(calls: ReadonlyMap<string, number>, d1Statements: number) {
  const sum = (...names: string[]) =>
    [...calls].reduce((total, [name, count]) => total + (names.some((n) => name.startsWith(n)) ? count : 0), 0);
  return { d1Statements, objectRequests: sum('object '), r2Operations: sum('objects.', 'bucket.') };
}
