import { beforeEach, describe, expect, it } from 'vitest';
import { useJobs, WORK } from '../../test/helpers/job-world.ts';
import { startWorker } from '../../test/helpers/workerd.ts';
import { nameOfModels, packOfBuild } from '../platform/models-in-use.ts';
import { createProgress } from '../platform/progress.ts';
import { handleMessage } from './handle.ts';
import { partKey, planKey, workOf } from './keys.ts';
import { Mutex } from './mutex.ts';

/** With the object of the job in workerd, which counts its parts. */
const SHARDS = 4;
const THEIRS = workOf(nameOfModels(packOfBuild()));
let worker: Awaited<ReturnType<typeof startWorker>>;
const world = useJobs(async () => {
  worker = await startWorker();
  return worker;
});
beforeEach(async () => {
  const shards = Array.from({ length: SHARDS }, (_, n) => ({ startSample: n, endSample: n + 1 }));
  await world.running({ shards });
});

describe('a part that is there', () => {
  /** Delivers its message once more, to a service of that version. */
  async function handled(work: string) {
    const progress = createProgress(await worker.objects('JOB_PROGRESS'), work);
    await progress.begin(world.id, SHARDS);
    for (const key of [planKey(world.id, work), partKey(world.id, 3, work)]) {
      await world.ports.objects.put(key, new Uint8Array(1));
    }
    const message = { step: 'shard', jobId: world.id, shard: 3 } as const;
    const verdict = await handleMessage({ ...world.ports, work, progress }, new Mutex(() => 0), message, 1);
    const counted = Math.round((SHARDS * (await progress.fraction(world.id))) / 0.95);
    return { verdict, counted, steps: await world.steps() };
  }

  it('is settled once it is counted', async () => {
    expect(await handled(THEIRS)).toEqual({
      verdict: { kind: 'done' },
      counted: 1,
      steps: ['shard/0', 'shard/1', 'shard/2'],
    });
  });

  it('is not settled where another version of the counter left it out: the job ran for ever', async () => {
    expect(await handled(WORK)).toEqual({
      verdict: { kind: 'done' },
      counted: 0,
      steps: ['shard/0', 'shard/1', 'shard/2', 'shard/3'],
    });
  });
});
