import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startShards } from '../../test/helpers/database.ts';
import { blocksOf, fakePorts, recording } from '../../test/helpers/fake-models.ts';
import { ingestedState, TAG, useJobs } from '../../test/helpers/job-world.ts';
import { startStorage } from '../../test/helpers/storage.ts';
import type { DiarizeRequest } from '../contract/diarize.ts';
import type { DiarizeOutput } from '../contract/outputs.ts';
import { settingsOf } from '../diarization/parameters.ts';
import { encodePart } from '../diarization/part.ts';
import { analyseShard } from '../diarization/shard.ts';
import { createJobStore } from '../platform/d1/job-rows.ts';
import { createQueues } from '../platform/queues.ts';
import { createObjectStore } from '../platform/r2-objects.ts';
import { assembleJob, withPulse } from './assemble-job.ts';
import { createRecount } from './create-job.ts';
import { handleMessage } from './handle-message.ts';
import { OVERRUN_SAMPLES, SHARD_SAMPLES, saveIngest, shardCountOf } from './ingest-state.ts';
import type { JobPorts } from './job-ports.ts';
import type { JobOutcome, JobStore } from './job-store.ts';
import { Mutex } from './mutex.ts';
import { expire } from './sweeps.ts';
import { analysisKey, outputKey, partKey } from './work-keys.ts';

it('renews the lease while a long output is stored, and stops when the job has ended', async () => {
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
  const stopped = store(async () => {
    throw new Error('the job has ended');
  });
  await expect(stopped).rejects.toThrow('the job has ended');
  expect(stored).toHaveLength(105);
});

describe('an output that is stored while its job ends', () => {
  let storage: Awaited<ReturnType<typeof startStorage>>;
  beforeAll(async () => {
    storage = await startStorage();
    await storage.db.prepare(`INSERT INTO accounts (id, name, subscribed, created_at) VALUES ('a', 'a', 1, 0)`).run();
  });
  afterAll(() => storage?.stop());

  /**
   * Assembles a job and runs `beforeSuccess` between storing its output and marking it as succeeded.
   *
   * @returns whether the output still exists
   */
  async function outputRemains(id: string, beforeSuccess: (store: JobStore, outcome: JobOutcome) => Promise<boolean>) {
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
      expect(await beforeSuccess(store, outcome)).toBe(true);
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

  it('is deleted when the job was canceled', async () => {
    const error = { code: 'canceled', message: 'x' };
    expect(await outputRemains('canceled', (store) => store.cancel('canceled', error, 1))).toBe(false);
  });

  it('is deleted when the job was deleted', async () => {
    expect(await outputRemains('deleted', (store) => store.remove('a', 'deleted', 1))).toBe(false);
  });

  it('is kept when another run of the step has completed the job', async () => {
    expect(await outputRemains('completed', (store, outcome) => store.succeed('completed', outcome, 1))).toBe(true);
  });
});

/** Two shards, in which two people take turns. */
const samples = recording(Array.from({ length: 46 }, (_, i) => [[1 + (i % 2)], 7] as [number[], number]));
const NO_BOUNDS = { numSpeakers: undefined, minSpeakers: undefined, maxSpeakers: undefined };
const noPulse = async (): Promise<void> => undefined;

const world = useJobs();
let parts: Uint8Array[] = [];

beforeEach(async () => {
  if (parts.length === 0) {
    const settings = settingsOf('precision-2');
    parts = await Promise.all(
      Array.from({ length: shardCountOf(samples.length) }, (_, shard) => {
        const startSample = shard * SHARD_SAMPLES;
        const endSample = Math.min(startSample + SHARD_SAMPLES, samples.length);
        const blocks = blocksOf(samples, startSample, Math.min(samples.length, endSample + OVERRUN_SAMPLES));
        const range = { startSample, endSample, totalSamples: samples.length };
        return analyseShard(blocks, range, fakePorts(), settings, noPulse).then(encodePart);
      }),
    );
  }
});

/** Diarizes the recording from stored parts. @returns the job's id */
async function diarized(): Promise<string> {
  const { id, ports } = world;
  await world.running({ totalSamples: samples.length });
  for (const [shard, part] of parts.entries()) await ports.objects.put(partKey(id, shard, TAG), part.slice());
  await ports.store.nextStep(id, ['analyse'], 'assemble', world.now);
  await assembleJob(ports, await world.record(), noPulse);
  expect((await world.record()).status).toBe('succeeded');
  return id;
}

/** Recounts a job, through all steps. */
async function recounted(sourceId: string, bounds: object): Promise<{ id: string; output?: DiarizeOutput }> {
  const { ports } = world;
  world.another();
  const { id } = world;
  const source = await ports.store.find(sourceId);
  const created = await createRecount(ports, source!, { ...NO_BOUNDS, ...bounds }, { id });
  expect(created).toMatchObject({ ok: true, value: { status: 'created' } });
  for (const step of ['ingest', 'assemble'] as const)
    expect(await handleMessage(ports, new Mutex(() => world.now), { step, jobId: id }, 1)).toEqual({ kind: 'done' });
  const bytes = await ports.objects.get(outputKey(id));
  return { id, output: bytes && JSON.parse(new TextDecoder().decode(bytes)) };
}

const speakersOf = (output: DiarizeOutput | undefined) => new Set(output?.diarization.map(({ speaker }) => speaker));

describe('a recount', () => {
  it('diarizes several shards with other bounds from the analysis alone, free of charge', async () => {
    const first = await diarized();
    expect(await world.workKeys()).toEqual([]);
    await world.storage.db
      .prepare('UPDATE accounts SET subscribed = 0, credit_seconds = 0 WHERE id = ?1')
      .bind(world.accountId)
      .run();
    const one = await recounted(first, { numSpeakers: 1 });
    expect([...speakersOf(one.output)]).toEqual(['SPEAKER_00']);
    // A recount can start from a recount.
    const again = await recounted(one.id, {});
    expect(speakersOf(again.output).size).toBe(2);
    expect(again.output).toEqual(JSON.parse(new TextDecoder().decode(await world.ports.objects.get(outputKey(first)))));
    const { results } = await world.storage.db
      .prepare('SELECT billed_seconds AS billed, credit_seconds AS credit FROM usage_records WHERE job_id IN (?1, ?2)')
      .bind(one.id, again.id)
      .all();
    expect(results).toEqual([
      { billed: 0, credit: 0 },
      { billed: 0, credit: 0 },
    ]);
  });

  it('is refused once the output has expired; the sweep deletes the analysis', async () => {
    const { ports } = world;
    const first = await diarized();
    const source = await world.record();
    const recount = () => createRecount(ports, source, NO_BOUNDS, { id: 'never' });
    world.now += ports.outputTtlMs;
    expect(await recount()).toEqual({ ok: false, error: { kind: 'no_analysis' } });
    await expire(ports);
    expect(await ports.objects.exists(analysisKey(first))).toBe(false);
  });

  it('fails if the analysis is deleted before the recount begins', async () => {
    const first = await diarized();
    const source = await world.record();
    world.another();
    const { id } = world;
    await createRecount(world.ports, source, NO_BOUNDS, { id });
    await world.ports.objects.deleteMany([analysisKey(first)]);
    for (const step of ['ingest', 'assemble'] as const)
      await handleMessage(world.ports, new Mutex(() => world.now), { step, jobId: id }, 1);
    expect(await world.record()).toMatchObject({ status: 'failed', error: { code: 'analysis_gone' } });
  });
});
