import { beforeAll, describe, expect, it } from 'vitest';
import { blocksOf, fakePorts, recording } from '../../test/helpers/fake-models.ts';
import { recordingOf, TAG, useJobs } from '../../test/helpers/job-world.ts';
import { analyseShard, encodePart, settingsOf } from '../diarization/index.ts';
import { CHUNK_SAMPLES } from '../ingest/chunks.ts';
import { chunkKey, partKey } from './keys.ts';
import { Mutex } from './mutex.ts';
import type { IngestState, JobPorts } from './ports.ts';
import { runShard } from './run-shard.ts';
import { SHARD_SAMPLES } from './shards.ts';

/** On a real database and a real bucket, with chunks of a recording of two shards. */
const world = useJobs();
const SAMPLES = recording([
  [[1], 296],
  [[2], 44],
]);
/** What the first shard gives where the whole recording is at hand. */
let whole: Uint8Array;
beforeAll(async () => {
  const shard = { startSample: 0, endSample: SHARD_SAMPLES, totalSamples: SAMPLES.length };
  const settings = settingsOf('precision-2');
  whole = encodePart(await analyseShard(blocksOf(SAMPLES), shard, fakePorts(), settings, async () => undefined));
});

const RECORDING = recordingOf({ totalSamples: SAMPLES.length });

async function run(ports: JobPorts = world.ports, shard = 0): Promise<void> {
  await runShard(ports, new Mutex(() => 0), await world.record(), shard);
}
const part = (shard = 0) => world.ports.objects.get(partKey(world.id, shard, TAG));
/** Keys of the job's parts. */
const made = async () => (await world.workKeys()).filter((key) => key.includes('/part-'));

/** A job whose recording is still being read: three of its chunks are stored. */
async function beingRead(changes: Partial<IngestState> = {}): Promise<void> {
  await world.create();
  const { store } = world.ports;
  await store.start(world.id, world.now);
  await store.addShards(world.id, 0, 1, world.now);
  const start = { generation: 0, identity: 'a file', chunks: 3, checkpoint: { sample: 3 * CHUNK_SAMPLES } };
  await world.putState({ ...start, dispatchedShards: 0, ...changes });
  await world.putChunks(SAMPLES);
}

it('hears the windows that begin in a shard to their end: what is told at its border is what one whole shard tells', async () => {
  await world.running(RECORDING);
  await world.putChunks(SAMPLES);
  await run();
  expect(await made()).toEqual([`work/${world.id}/part-v.0-00000`]);
  expect(Buffer.compare((await part())!, whole)).toBe(0);
  expect(await world.steps()).toEqual(['shard/1']);
});

it('gives the same part while the rest of the recording is still being read', async () => {
  await beingRead();
  // Nothing after the ten seconds that a shard reads on.
  await world.ports.objects.deleteMany([chunkKey(world.id, 3, TAG)]);
  await run();
  expect(Buffer.compare((await part())!, whole)).toBe(0);
  expect(await world.steps()).toEqual(['ingest']);
});

it('makes no part twice, and none of a job that no longer runs', async () => {
  await world.running(RECORDING);
  await world.ports.objects.put(partKey(world.id, 0, TAG), new Uint8Array(3));
  await run();
  expect([(await part())?.length, await world.steps()]).toEqual([3, ['shard/1']]);
  await world.ports.store.cancel(world.id, { code: 'canceled', message: 'x' }, world.now);
  await run(world.ports, 1);
  expect(await made()).toHaveLength(1);
});

it('fails where a chunk is gone or shorter than it should be: the part would be of another recording', async () => {
  await world.running(RECORDING);
  await expect(run()).rejects.toThrow(/is gone/);
  await world.putChunks(SAMPLES.subarray(0, 2 * CHUNK_SAMPLES + 16_000));
  await expect(run()).rejects.toThrow('chunk 2 is shorter than it should be');
  expect([await made(), await world.steps()]).toEqual([[], ['shard/0', 'shard/1']]);
});

describe('a message that is left over', () => {
  it('of a longer file for a shard that does not exist is settled: the step was retried until its job failed', async () => {
    await world.running(RECORDING);
    await world.ports.store.addShards(world.id, 2, 3, world.now);
    await expect(run(world.ports, 2)).rejects.toMatchObject({ name: 'JobGone' });
    expect(await made()).toEqual([]);
  });

  it('of another file or version waits for the chunks: it failed because they were not there', async () => {
    await beingRead({ chunks: 2 });
    await run();
    expect([await made(), await world.steps()]).toEqual([[], ['ingest', 'shard/0']]);
  });
});

it('does not count a part of a file that has been replaced meanwhile', async () => {
  await world.running(RECORDING);
  await world.putChunks(SAMPLES);
  const counted: string[] = [];
  const partDone: JobPorts['progress']['partDone'] = async (_jobId, _shard, tag) => {
    counted.push(tag);
    return false;
  };
  const exists: JobPorts['objects']['exists'] = async (key) => {
    // The state is read by now.
    await world.putState({ ...(await world.state())!, generation: 1 });
    return world.ports.objects.exists(key);
  };
  await run({ ...world.withObjects({ exists }), progress: { ...world.ports.progress, partDone } });
  expect(counted).toEqual([TAG]);
  expect(await world.steps()).toEqual(['shard/0', 'shard/1']);
});
