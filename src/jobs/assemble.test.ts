import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startShards, startStorage } from '../../test/helpers/database.ts';
import { blocksOf, fakePorts, recording } from '../../test/helpers/fake-models.ts';
import { ingestedState } from '../../test/helpers/job-world.ts';
import type { DiarizeRequest } from '../contract/diarize.ts';
import { settingsOf } from '../diarization/parameters.ts';
import { encodePart } from '../diarization/part.ts';
import { analyseShard } from '../diarization/shard.ts';
import { createJobStore } from '../platform/d1/job-store.ts';
import { createQueues } from '../platform/queues.ts';
import { createObjectStore } from '../platform/r2-objects.ts';
import { assembleJob, withPulse } from './assemble.ts';
import { saveIngest } from './ingest-state.ts';
import { outputKey, partKey } from './keys.ts';
import type { JobOutcome, JobPorts, JobStore } from './ports.ts';

it('an output that takes long to be stored gives signs of life, and stops where the job has ended', async () => {
  let now = 0;
  let pulses = 0;
  const chunks = Array.from({ length: 100 }, (_, i) => String(i));
  const stored: string[] = [];
  const store = async (pulse: () => Promise<void>) => {
    for await (const chunk of withPulse(chunks, () => now, pulse)) {
      stored.push(chunk);
      now += 1000;
    }
  };
  await store(async () => {
    pulses++;
  });
  expect(stored).toEqual(chunks);
  expect(pulses).toBe(20);
  const gone = store(async () => {
    throw new Error('the job has ended');
  });
  await expect(gone).rejects.toThrow('the job has ended');
  expect(stored).toHaveLength(105);
});

describe('an output that was written while its job ended', () => {
  let storage: Awaited<ReturnType<typeof startStorage>>;
  beforeAll(async () => {
    storage = await startStorage();
    await storage.db.prepare(`INSERT INTO accounts (id, name, subscribed, created_at) VALUES ('a', 'a', 1, 0)`).run();
  });
  afterAll(() => storage?.stop());

  /**
   * Assembles a job of which something else becomes when its output has just been stored. @returns whether that is
   * still there
   */
  async function left(id: string, meanwhile: (store: JobStore, outcome: JobOutcome) => Promise<boolean>) {
    const samples = recording([[[1], 12]]);
    const shard = { startSample: 0, endSample: samples.length, totalSamples: samples.length };
    const settings = settingsOf('precision-2');
    const part = encodePart(await analyseShard(blocksOf(samples), shard, fakePorts(), settings, async () => undefined));
    const store = createJobStore(storage.db);
    const objects = createObjectStore(storage.bucket);
    const request = { url: 'https://example.com/a.wav', model: 'precision-2' } as DiarizeRequest;
    await store.create({ accountId: 'a', kind: 'diarize', request, id, now: 0 });
    await startShards(store, id, { shardCount: 1, durationSeconds: 12 }, 0);
    await saveIngest({ objects, work: 'v' }, id, ingestedState({ totalSamples: samples.length }), undefined);
    await objects.put(partKey(id, 0, 'v.0'), part);
    const succeed = async (jobId: string, outcome: JobOutcome, now: number) => {
      expect(await objects.exists(outcome.outputKey)).toBe(true);
      expect(await meanwhile(store, outcome)).toBe(true);
      return store.succeed(jobId, outcome, now);
    };
    const ports = {
      store: { ...store, succeed },
      objects,
      queue: createQueues(storage.queues),
      plda: async () => undefined,
      progress: { end: async () => undefined } as unknown as JobPorts['progress'],
      pause: async () => {},
      sleep: async () => {},
      log: () => {},
      now: () => 0,
      work: 'v',
    } as Partial<JobPorts> as JobPorts;
    await assembleJob(ports, (await store.find(id))!, async () => undefined);
    return objects.exists(outputKey(id));
  }

  it('is taken away again where it was canceled', async () => {
    const error = { code: 'canceled', message: 'x' };
    expect(await left('canceled', (store) => store.cancel('canceled', error, 1))).toBe(false);
  });

  it('is taken away again where it was deleted', async () => {
    expect(await left('deleted', (store) => store.remove('a', 'deleted', 1))).toBe(false);
  });

  it('stays where another copy has ended it: it is the output of both', async () => {
    expect(await left('twice', (store, outcome) => store.succeed('twice', outcome, 1))).toBe(true);
  });
});
