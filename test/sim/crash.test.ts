import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';

/**
 * Jobs on machines that die at any moment, with queues that lose and repeat, a database and a bucket whose answers get
 * lost, and slow, faulty servers. The steps, the database, the bucket and the class of the jobs' objects are the real
 * ones; queues, servers, receivers and time are simulated, all of them by the numbers that follow from a seed, so that
 * a seed tells the same story every time. After half an hour nothing fails any more; an hour later every job must have
 * ended once, with a bill if it succeeded, told its webhook and left nothing behind.
 *
 *     SIM_SEEDS=1-150 npx vitest run test/sim    other seeds than the fixed ones, with a line about each
 *     SIM_KILL=store.restart                     with them: the first invocation that makes this call dies of it
 *     SIM_DEPLOY=1                               with them: always a deployment in the middle, otherwise with two seeds of five
 *     SIM_LOG=1                                  the whole log of each
 */

// Some modules take hold of the machine's clock when they are loaded.
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
import { CREDIT_SECONDS, findings } from './invariants.ts';
import { ACCOUNT, run, runNextDay } from './scenario.ts';
import { DAY, MINUTE } from './timeline.ts';
import { World } from './world.ts';

interface Case {
  readonly seed: number;
  readonly kill?: string;
  readonly isDeployed?: boolean;
}

const { SIM_SEEDS, SIM_KILL, SIM_DEPLOY, SIM_LOG } = process.env;
const FIXED: readonly Case[] = [
  // In the last of them a success meets a cancel.
  ...[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 63].map((seed) => ({ seed })),
  // Both versions take messages: the parts of the one that stays must be counted, whichever has begun to count or
  // finished first.
  ...[13, 50, 55].map((seed) => ({ seed, isDeployed: true })),
  // Nobody but the alarm of the job's object continues with what is left here.
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
/** A story takes two seconds, on a busy machine many more. */
const STORY_MS = 90_000;
const LOG_TAIL = 60;
const LEASE_RENEWAL_MS = 10_000;
const PLACE_POLL_MS = 50;
const SILENCE_LOOK_MS = 1000;
/** As long as the last fault, and what comes after it, takes. */
const LONG_MS = 90 * MINUTE;
const SHARD_SECONDS = 300;

function cases(): readonly Case[] {
  if (SIM_SEEDS === undefined) return FIXED.filter((_, index) => RUNS_ALL_CASES || index % 5 === 0);
  const [first, last = first] = SIM_SEEDS.split('-').map(Number);
  const isDeployed = SIM_DEPLOY !== undefined;
  return Array.from({ length: last - first + 1 }, (_, i) => ({ seed: first + i, kill: SIM_KILL, isDeployed }));
}

let storage: Storage;
let stories = 0;
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
  // A turn in a module, held by what died in one story, must be long past in the next: a seed tells the same whatever
  // was told before it.
  const world = new World(seed, storage, START + 2 * DAY * stories++, kill);
  clock.now = () => world.time.now;
  simulateTimers(world);
  return world;
}

/**
 * Steps that wait for the network renew their leases by a timer of the platform and look whether anything comes, and
 * those that wait for a place in their isolate look again and again.
 */
function simulateTimers({ time }: World): void {
  const { setInterval, clearInterval, setTimeout } = globalThis;
  const running = new Set<unknown>();
  vi.stubGlobal('setTimeout', (run: () => void, ms?: number, ...args: unknown[]) => {
    if (ms !== PLACE_POLL_MS) return setTimeout(run, ms, ...args);
    time.after(ms, run);
    return {};
  });
  vi.stubGlobal('setInterval', (tick: () => void, ms: number) => {
    if (ms !== LEASE_RENEWAL_MS && ms !== SILENCE_LOOK_MS) return setInterval(tick, ms);
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

describe('every job ends once, is billed once, tells its webhook and leaves nothing behind', () => {
  it.each(cases().map((story) => [nameOf(story), story] as const))(
    '%s',
    async (name, story) => {
      const world = await worldOf(story);
      const calls = await run(world, story.isDeployed ?? false);
      const { broken, summary } = await findings(world, calls, () => runNextDay(world));
      const { log } = world.time;
      if (SIM_SEEDS !== undefined) console.log(`${name}: ${summary}${world.faults.hasKilled ? '; killed' : ''}`);
      if (SIM_LOG !== undefined) console.log(log.join('\n'));
      if (broken.length > 0)
        throw new Error([`${name}: ${broken.join('\n')}`, summary, ...log.slice(-LOG_TAIL)].join('\n'));
      // A death that never came shows nothing.
      if (SIM_SEEDS === undefined) expect(world.faults.hasKilled).toBe(story.kill !== undefined);
    },
    STORY_MS,
  );
});

describe.runIf(RUNS_ALL_CASES)('a long job', () => {
  const url = 'https://example.com/day.wav';
  const id = 'long';

  /** Runs one job to its end; something happens meanwhile. */
  async function runJob(shards: number, meanwhile: (world: World) => void = () => undefined) {
    const world = await worldOf({ seed: 4 });
    const { time, faults } = world;
    faults.isOn = false;
    const seconds = shards * SHARD_SECONDS;
    world.recordings.set(url, { fate: 'plain', seconds: [seconds], changesAt: [], sampleRateHz: 44_100 });
    // Its bytes are in the request: they come at once, as those of an upload do.
    const call = { id, url, isInline: true, webhook: 'https://example.com/hook' };
    const request = { url: `data:${encodeURIComponent(url)}`, model: 'precision-2', webhook: call.webhook };
    meanwhile(world);
    const statements = storage.counts.statements;
    void createJob(
      world.portsFor('create'),
      { accountId: ACCOUNT, kind: 'diarize', request } as unknown as CreateJob,
      id,
    );
    let looks = 0;
    const state = async () => {
      looks++;
      return (await storage.db.prepare('SELECT status FROM jobs').first<{ status: string }>())?.status;
    };
    while (time.now < time.start + LONG_MS && (await state()) !== 'succeeded') await time.runUntil(time.now + MINUTE);
    const minutes = (time.now - time.start) / MINUTE;
    // Its webhook is told.
    await time.runUntil(time.now + MINUTE);
    const cost = costOf(faults.calls, storage.counts.statements - statements - looks);
    return { world, cost, minutes, ...(await findings(world, [call], () => runNextDay(world))) };
  }

  it('of 288 shards lives through D1 and R2 away for ten minutes each and consumers that are ended after fifteen', async () => {
    const { broken, summary, minutes, world } = await runJob(288, (running) => {
      const { time, faults } = running;
      for (let ms = 5 * MINUTE; ms < LONG_MS; ms += 5 * MINUTE) time.after(ms, () => running.sweep());
      const between = (from: number, to: number, what: readonly string[]) => {
        time.after(from * MINUTE, () => what.map((name) => faults.away.add(name)));
        time.after(to * MINUTE, () => what.map((name) => faults.away.delete(name)));
      };
      between(1, 11, ['store.']);
      between(12, 22, ['objects.', 'bucket.']);
      time.after(22 * MINUTE, () => faults.hanging.set('objects.getRange', 6));
    });
    const { log } = world.time;
    if (broken.length > 0) throw new Error([...broken, summary, ...log.slice(-LOG_TAIL)].join('\n'));
    for (const what of [/AWAY store/, /AWAY objects/, /HANGS objects.getRange of shard/, /DIES shard/])
      expect(
        log.some((line) => what.test(line)),
        String(what),
      ).toBe(true);
    expect(summary).toMatch(/^succeeded; 288 parts$/);
    expect(minutes).toBeLessThan(LONG_MS / MINUTE);
  }, 600_000);

  it('asks D1 a few times for its reading, and never for a shard', async () => {
    const costs = [];
    for (const shards of [1, 12, 36, 288]) {
      const { broken, cost } = await runJob(shards);
      expect(broken).toEqual([]);
      costs.push({ shards, ...cost });
    }
    if (SIM_LOG !== undefined) console.table(costs);
    const [short, hour, hours, day] = costs;
    expect(short!.d1Statements).toBeLessThanOrEqual(30);
    expect(hour!.d1Statements).toBeLessThanOrEqual(short!.d1Statements + 45);
    expect(hours!.d1Statements).toBeLessThanOrEqual(short!.d1Statements + 80);
    expect(day!.d1Statements).toBeLessThanOrEqual(short!.d1Statements + 420);
    for (const { shards, objectRequests, r2Operations } of costs) {
      expect(objectRequests).toBeLessThanOrEqual(4 * shards + 12);
      expect(r2Operations).toBeLessThanOrEqual(14 * shards + 24);
    }
  }, 600_000);
});

/** What a job has asked of the platform. */
function costOf(calls: ReadonlyMap<string, number>, d1Statements: number) {
  const sum = (...names: string[]) =>
    [...calls].reduce((total, [name, count]) => total + (names.some((n) => name.startsWith(n)) ? count : 0), 0);
  return { d1Statements, objectRequests: sum('object '), r2Operations: sum('objects.', 'bucket.') };
}
