import { beforeEach, describe, expect, it } from 'vitest';
import { blocksOf, fakePorts, recording } from '../../test/helpers/fake-models.ts';
import { TAG, useJobs } from '../../test/helpers/job-world.ts';
import type { DiarizeOutput } from '../contract/outputs.ts';
import { settingsOf } from '../diarization/parameters.ts';
import { encodePart } from '../diarization/part.ts';
import { analyseShard } from '../diarization/shard.ts';
import { assembleJob } from './assemble.ts';
import { expire } from './expire.ts';
import { handleMessage } from './handle.ts';
import { analysisKey, outputKey, partKey } from './keys.ts';
import { Mutex } from './mutex.ts';
import { createRecount } from './recount.ts';
import { OVERRUN_SAMPLES, SHARD_SAMPLES, shardCountOf } from './shards.ts';

/** Two shards, in which two people take turns. */
const samples = recording(Array.from({ length: 32 }, (_, i) => [[1 + (i % 2)], 10] as [number[], number]));
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
  it('diarizes several shards with other bounds, from the analysis alone, and bills nothing', async () => {
    const first = await diarized();
    expect(await world.workKeys()).toEqual([]);
    await world.storage.db
      .prepare('UPDATE accounts SET subscribed = 0, credit_seconds = 0 WHERE id = ?1')
      .bind(world.accountId)
      .run();
    const one = await recounted(first, { numSpeakers: 1 });
    expect([...speakersOf(one.output)]).toEqual(['SPEAKER_00']);
    // A recount of a recount.
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
