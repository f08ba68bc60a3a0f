import { beforeAll, describe, expect, it } from 'vitest';
import { testSignal } from '../../test/helpers/audio.ts';
import { blocksOf, fakePorts, recording } from '../../test/helpers/fake-models.ts';
import { recordingOf, TAG, useJobs } from '../../test/helpers/job-world.ts';
import { settingsOf } from '../diarization/parameters.ts';
import { encodePart } from '../diarization/part.ts';
import { analyseShard } from '../diarization/shard.ts';
import { CHUNK_SAMPLES } from '../ingest/chunks.ts';
import { OVERRUN_SAMPLES, readyShards, SHARD_SAMPLES, SHARD_SECONDS, shardCountOf } from './ingest-state.ts';
import type { JobPorts } from './job-ports.ts';
import { beginShard, StageClock } from './shards.ts';
import { chunkKey, partKey } from './work-keys.ts';

/** Uses a real database, a real bucket and chunks of a recording of two shards. */
const world = useJobs();
const SAMPLES = recording([
  [[1], 296],
  [[2], 44],
]);
/** Part of the first shard, computed from the whole recording. */
let reference: Uint8Array;
beforeAll(async () => {
  const shard = { startSample: 0, endSample: SHARD_SAMPLES, totalSamples: SAMPLES.length };
  const settings = settingsOf('precision-2');
  reference = encodePart(await analyseShard(blocksOf(SAMPLES), shard, fakePorts(), settings, async () => undefined));
});

const RECORDING = recordingOf({ totalSamples: SAMPLES.length });

const noPulse = async () => undefined;
/** @returns whether the shard was begun */
async function run(ports: JobPorts = world.ports, shard = 0): Promise<boolean> {
  const begun = await beginShard(ports, { step: 'shard', jobId: world.id, shard }, 0);
  await begun?.run(noPulse);
  return begun !== undefined;
}
/** The same ports, with some methods of the job's object replaced. */
const withProgress = (changes: Partial<JobPorts['progress']>): JobPorts => ({
  ...world.ports,
  progress: { ...world.ports.progress, ...changes },
});
const part = (shard = 0) => world.ports.objects.get(partKey(world.id, shard, TAG));
/** Keys of the job's parts. */
const made = async () => (await world.workKeys()).filter((key) => key.includes('/part-'));

/** Creates a job whose recording is still being read: three of its chunks are stored. */
async function beingRead(): Promise<void> {
  await world.create();
  await world.ports.store.start(world.id, world.now);
  const start = { generation: 0, identity: 'a file', model: 'precision-2', chunks: 3 } as const;
  await world.putState({ ...start, checkpoint: { sample: 3 * CHUNK_SAMPLES } });
  await world.putChunks(SAMPLES);
}

it('gives the same part as an analysis of the whole recording', async () => {
  await world.running(RECORDING);
  await world.putChunks(SAMPLES);
  await run();
  expect(await made()).toEqual([`work/${world.id}/part-v.0-00000`]);
  expect(Buffer.compare((await part())!, reference)).toBe(0);
});

it('gives the same part before the recording is read completely', async () => {
  await beingRead();
  // Keep nothing after the ten seconds of overrun.
  await world.ports.objects.deleteMany([chunkKey(world.id, 3, TAG)]);
  await run();
  expect(Buffer.compare((await part())!, reference)).toBe(0);
});

it('skips a part that exists and a shard that the object of the job skips', async () => {
  await world.running(RECORDING);
  await world.ports.objects.put(partKey(world.id, 0, TAG), new Uint8Array(3));
  await run();
  expect((await part())?.length).toBe(3);
  expect(await run(withProgress({ startShard: async () => ({ kind: 'skip' }) }), 1)).toBe(false);
  expect(await made()).toHaveLength(1);
});

it('needs no query of D1', async () => {
  await world.running(RECORDING);
  await world.putChunks(SAMPLES);
  const store = new Proxy(world.ports.store, {
    get: (_, name) => {
      throw new Error(`D1 was queried with ${String(name)}`);
    },
  });
  expect(await run({ ...world.ports, store })).toBe(true);
});

it('fails if a chunk is missing or too short', async () => {
  await world.running(RECORDING);
  await expect(run()).rejects.toThrow(/is gone/);
  await world.putChunks(SAMPLES.subarray(0, 2 * CHUNK_SAMPLES + 16_000));
  await expect(run()).rejects.toThrow('chunk 2 is shorter than it should be');
  expect(await made()).toEqual([]);
});

it('restarts the object of the job if it hands out shards of another version', async () => {
  const calls: unknown[] = [];
  const record = (name: string) => async (_jobId: string, tag: string, shards?: number) =>
    void calls.push([name, tag, shards]);
  const ports = withProgress({
    startShard: async () => ({ kind: 'unknown' }),
    begin: record('begin'),
    ready: record('ready'),
    expect: record('expect'),
  });
  await world.running(RECORDING);
  expect(await run({ ...ports, progress: { ...ports.progress } })).toBe(false);
  world.another();
  await beingRead();
  expect(await run(ports)).toBe(false);
  expect(calls).toEqual([
    ['begin', TAG, undefined],
    ['expect', TAG, 2],
    ['begin', TAG, undefined],
    ['ready', TAG, 1],
  ]);
  expect(await made()).toEqual([]);
});

const RATE = 16_000;

it('shards cover a recording without gap or overlap, aligned to stretches', () => {
  expect(SHARD_SAMPLES % (10 * RATE)).toBe(0);
  for (const seconds of [0.001, 9.99, 300, 300.01, 301, 3600, 86_400]) {
    const total = Math.ceil(seconds * RATE);
    const shards = shardCountOf(total);
    expect(shards).toBe(Math.ceil(total / (SHARD_SECONDS * RATE)));
    expect((shards - 1) * SHARD_SAMPLES).toBeLessThan(total);
    expect(shards * SHARD_SAMPLES).toBeGreaterThanOrEqual(total);
  }
});

it('has no shard for a recording without samples', () => {
  expect(shardCountOf(0)).toBe(0);
});

it('a shard is ready once its overrun is stored, the last one only at the end', () => {
  expect([0, OVERRUN_SAMPLES, SHARD_SAMPLES].map(readyShards)).toEqual([0, 0, 0]);
  expect(readyShards(SHARD_SAMPLES + OVERRUN_SAMPLES - 1)).toBe(0);
  expect(readyShards(SHARD_SAMPLES + OVERRUN_SAMPLES)).toBe(1);
  expect([1, 2, 3, 4, 5].map((chunks) => readyShards(chunks * CHUNK_SAMPLES))).toEqual([0, 0, 1, 1, 2]);
  for (let stored = 0; stored < 10 * SHARD_SAMPLES; stored += 7 * RATE) {
    expect(readyShards(stored)).toBeLessThan(Math.max(1, shardCountOf(stored)));
  }
});

describe('the samples that a shard reads', () => {
  it('are complete, with one pause per four seconds instead of per block', async () => {
    const whole = testSignal(16_000, 1, 17.3);
    const sizes = [1, 576, 1152, 40_000, 0, 333];
    async function* blocks(): AsyncGenerator<Float32Array> {
      const reused = new Float32Array(40_000);
      for (let at = 0, turn = 0; at < whole.length; turn++) {
        const size = Math.min(sizes[turn % sizes.length], whole.length - at);
        reused.set(whole.subarray(at, at + size));
        yield reused.subarray(0, size);
        at += size;
      }
    }
    let pauses = 0;
    const clock = new StageClock(
      () => pauses,
      async () => {
        pauses++;
      },
    );
    const read: number[] = [];
    for await (const block of clock.samples(blocks())) {
      for (const sample of block) read.push(sample);
    }
    expect(Float32Array.from(read)).toEqual(whole);
    expect(pauses).toBeLessThanOrEqual(5);
    expect(clock.finish().decodeMs).toBe(pauses);
  });
});
