import { beforeEach, describe, expect, it } from 'vitest';
import { ingestedState, TAG, useJobs } from '../../test/helpers/job-world.ts';
import { startWorkers } from '../../test/helpers/workerd.ts';
import { createProgress } from '../platform/progress.ts';
import { handleMessage } from './handle.ts';
import { partKey } from './keys.ts';
import { Mutex } from './mutex.ts';

/** With the object of the job in workerd, which counts its parts. */
const SHARDS = 4;
let worker: Awaited<ReturnType<typeof startWorkers>>;
const world = useJobs(async () => {
  worker = await startWorkers();
  return worker;
});
beforeEach(async () => {
  await world.running({ shardCount: SHARDS });
});

describe('a part that is there', () => {
  /** Delivers its message once more, where parts of that tag are counted. */
  async function handled(countedTag: string, beforeCount: () => Promise<void> = async () => undefined) {
    const progress = createProgress(await worker.objects('JOB_PROGRESS'));
    await progress.begin(world.id, countedTag);
    await progress.expect(world.id, countedTag, SHARDS);
    const before = await progress.fraction(world.id);
    await world.ports.objects.put(partKey(world.id, 3, TAG), new Uint8Array(1));
    const message = { step: 'shard', jobId: world.id, shard: 3 } as const;
    const partDone: typeof progress.partDone = async (...parameters) => {
      await beforeCount();
      return progress.partDone(...parameters);
    };
    const ports = { ...world.ports, progress: { ...progress, partDone } };
    const verdict = await handleMessage(ports, new Mutex(() => 0), message, 1);
    const isCounted = (await progress.fraction(world.id)) > before;
    return { verdict, isCounted, steps: await world.steps() };
  }
  const others = ['shard/0', 'shard/1', 'shard/2'];

  it('is settled once it is counted', async () => {
    expect(await handled(TAG)).toEqual({ verdict: { kind: 'done' }, isCounted: true, steps: others });
  });

  it('is counted again where another version took the counter meanwhile: the job ran forever', async () => {
    expect(await handled(`w${TAG}`)).toEqual({ verdict: { kind: 'done' }, isCounted: true, steps: others });
  });

  it('is not settled where it is of a file that is no longer read: the job ran forever', async () => {
    const another = { ...ingestedState({ shardCount: SHARDS }), generation: 1 };
    expect(await handled(TAG.replace('.0', '.1'), () => world.putState(another))).toEqual({
      verdict: { kind: 'done' },
      isCounted: false,
      steps: [...others, 'shard/3'],
    });
  });
});
