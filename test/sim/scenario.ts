import type { CreateJob } from '../../src/jobs/app-services.ts';
import { createJob } from '../../src/jobs/create-job.ts';
import { cancelJob, deleteJob } from '../../src/jobs/end-job.ts';
import { FATES, type SimulatedRecording } from './sources.ts';
import { HOUR, MINUTE, type Timeline } from './timeline.ts';
import type { World } from './world.ts';

/** A call that makes a job; calls with the same key are meant to make one. */
export interface Call {
  readonly id: string;
  /** Of the recording; its bytes may be in the request instead. */
  readonly url: string;
  readonly isInline: boolean;
  readonly webhook?: string;
  readonly key?: string;
}

export const ACCOUNT = 'a';
const SHARD_SECONDS = 300;
/** Faults end: whatever has happened until then, an hour later everything is at its end. */
const FAULTS_END = 30 * MINUTE;
const END = 100 * MINUTE;

/**
 * Two or three jobs of all kinds, some of them called for twice, canceled or deleted, perhaps with a deployment in the
 * middle.
 */
export async function run(world: World, isDeployed: boolean): Promise<readonly Call[]> {
  const { time } = world;
  const calls: Call[] = [];
  const jobs = 2 + time.below(2);
  for (let n = 0; n < jobs; n++) calls.push(...callFor(world, n));
  if (time.chance(isDeployed ? 1 : 0.4)) time.after(time.between(MINUTE, 12 * MINUTE), () => world.deploy());
  for (let ms = 5 * MINUTE; ms < END; ms += 5 * MINUTE) time.after(ms, () => world.sweep());
  await time.runUntil(time.start + FAULTS_END);
  time.say('NO MORE FAULTS');
  world.faults.isOn = false;
  await time.runUntil(time.start + END);
  return calls;
}

/** The sweep after the day that outputs are kept. */
export async function runNextDay(world: World): Promise<void> {
  const { time } = world;
  time.clear();
  const nextDay = time.start + 27 * HOUR;
  time.at(nextDay, () => world.sweep());
  await time.runUntil(nextDay + 4 * MINUTE);
}

const VERSIONS = 3;
const CD_HZ = 44_100;
/** An invocation has enough of it after four minutes. */
const HUGE_HZ = 8e6;

/** @param at when it is asked for at first */
function recordingOf(time: Timeline, at: number): SimulatedRecording {
  const fate = FATES[time.below(FATES.length)];
  // Some end at the border of a chunk, of a shard, or just after it.
  const length = () => SHARD_SECONDS * (1 + time.below(4)) - [17, 0, 150, 293, -5][time.below(5)];
  const changesAt = [time.between(0, MINUTE), time.between(0, 5 * MINUTE)].map((after) => at + after);
  return {
    fate,
    seconds: Array.from({ length: VERSIONS }, length),
    changesAt: fate === 'changing' ? changesAt : [],
    sampleRateHz: time.chance(0.4) ? HUGE_HZ : CD_HZ,
  };
}

/** Plans the calls that make a job, and what its owner does with it afterwards. */
function callFor(world: World, n: number): Call[] {
  const { time, seed } = world;
  const url = `https://example.com/${seed}-${n}.wav`;
  const at = time.start + time.between(0, 10 * MINUTE);
  world.recordings.set(url, recordingOf(time, at));
  const webhook = time.chance(0.8) ? `https://example.com/${time.chance(0.2) ? 'broken' : 'hook'}` : undefined;
  const isIdentify = time.chance(0.4);
  const isInline = time.chance(0.2);
  const request = {
    url: isInline ? `data:${encodeURIComponent(url)}` : url,
    model: 'precision-2',
    webhook,
    ...(isIdentify && { voiceprints: [{ label: 'x', voiceprint: 'y' }] }),
    ...(time.chance(0.15) && { metadata: { silent: 'yes' } }),
  };
  const key = time.chance(0.5) ? `key-${n}` : undefined;
  // The contract's parser would fill in the rest of the request, which no step looks at here.
  const spec = {
    accountId: ACCOUNT,
    kind: isIdentify ? 'identify' : 'diarize',
    request,
    ...(key && { idempotency: { key, bodyHash: 'h' } }),
  } as unknown as CreateJob;
  const count = key ? 2 + time.below(2) : 1;
  return Array.from({ length: count }, (_, i) => {
    const id = `job-${seed}-${n}-${i}`;
    const later = i === 0 ? 0 : time.between(0, time.chance(0.5) ? 200 : MINUTE);
    time.at(at + later, () => create(world, spec, id));
    if (time.chance(0.2))
      time.at(at + time.between(100, time.chance(0.5) ? 2 * MINUTE : 12 * MINUTE), () => cancel(world, id));
    if (time.chance(0.15)) time.at(at + time.between(100, 15 * MINUTE), () => remove(world, id));
    return { id, url, isInline, webhook, key };
  });
}

function create(world: World, spec: CreateJob, id: string): void {
  const { time, history } = world;
  createJob(world.portsFor(`create ${id}`), spec, id).then(
    (made) => {
      time.say(`created ${id}: ${made.ok ? made.value.id : made.error.kind}`);
      if (made.ok) history.given.push(made.value.id);
    },
    (error: unknown) => time.say(`create ${id} failed: ${error}`),
  );
}

function cancel(world: World, id: string): void {
  cancelJob(world.portsFor(`cancel ${id}`), ACCOUNT, id).catch(ignored);
}

function remove(world: World, id: string): void {
  deleteJob(world.portsFor(`delete ${id}`), ACCOUNT, id).catch(ignored);
}

/** The caller gets a 500 and leaves it at that. */
const ignored = (): void => {};
