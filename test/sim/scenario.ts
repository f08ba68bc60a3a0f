import type { CreateJob } from '../../src/jobs/app-services.ts';
import { createJob } from '../../src/jobs/create-job.ts';
import { cancelJob, deleteJob } from '../../src/jobs/end-job.ts';
import { BEHAVIOURS, type SimulatedRecording } from './sources.ts';
import { HOUR, MINUTE, type Timeline } from './timeline.ts';
import type { World } from './world.ts';

/** A call that creates a job; calls with the same key must create one job. */
export interface Call {
  readonly id: string;
  /** URL of the recording; with `isInline` the request contains its bytes. */
  readonly url: string;
  readonly isInline: boolean;
  readonly webhook?: string;
  readonly key?: string;
}

export const ACCOUNT = 'a';
const SHARD_SECONDS = 300;
/** Faults end: an hour later all jobs must have ended. */
const FAULTS_END = 30 * MINUTE;
const END = 100 * MINUTE;

/**
 * Runs two or three jobs of all kinds, some of them requested twice, canceled or deleted, perhaps with a deployment.
 */
export async function run(world: World, isDeployed: boolean): Promise<readonly Call[]> {
  const { time } = world;
  const calls: Call[] = [];
  const jobs = 2 + time.below(2);
  for (let n = 0; n < jobs; n++) calls.push(...callFor(world, n));
  if (time.chance(isDeployed ? 1 : 0.4)) time.after(time.between(MINUTE, 12 * MINUTE), () => world.deploy());
  for (let ms = 5 * MINUTE; ms < END; ms += 5 * MINUTE) time.after(ms, () => world.sweep());
  await time.runUntil(time.start + FAULTS_END);
  time.trace('NO MORE FAULTS');
  world.faults.isOn = false;
  await time.runUntil(time.start + END);
  return calls;
}

/** Runs the sweep after the retention of outputs. */
export async function runNextDay(world: World): Promise<void> {
  const { time } = world;
  time.clear();
  const nextDay = time.start + 27 * HOUR;
  time.at(nextDay, () => world.sweep());
  await time.runUntil(nextDay + 4 * MINUTE);
}

const VERSIONS = 3;
const CD_HZ = 44_100;
/** An invocation hands over after four minutes of audio at this rate. */
const HUGE_HZ = 8e6;

/** @param at time of the first request for it */
function recordingOf(time: Timeline, at: number): SimulatedRecording {
  const behaviour = BEHAVIOURS[time.below(BEHAVIOURS.length)];
  // Some end at the boundary of a chunk or shard, or just after it.
  const length = () => SHARD_SECONDS * (1 + time.below(4)) - [17, 0, 150, 293, -5][time.below(5)];
  const changesAt = [time.between(0, MINUTE), time.between(0, 5 * MINUTE)].map((after) => at + after);
  return {
    behaviour,
    seconds: Array.from({ length: VERSIONS }, length),
    changesAt: behaviour === 'changing' ? changesAt : [],
    sampleRateHz: time.chance(0.4) ? HUGE_HZ : CD_HZ,
  };
}

/** Plans the calls that create a job, and later cancellations and deletions. */
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
  // The contract's parser adds fields that no step uses here.
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
    (created) => {
      time.trace(`created ${id}: ${created.ok ? created.value.id : created.error.kind}`);
      if (created.ok) history.answeredIds.push(created.value.id);
    },
    (error: unknown) => time.trace(`create ${id} failed: ${error}`),
  );
}

function cancel(world: World, id: string): void {
  cancelJob(world.portsFor(`cancel ${id}`), ACCOUNT, id).catch(ignored);
}

function remove(world: World, id: string): void {
  deleteJob(world.portsFor(`delete ${id}`), ACCOUNT, id).catch(ignored);
}

/** The caller gets a 500 and does not retry. */
const ignored = (): void => {};
