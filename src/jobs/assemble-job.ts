import type { Result } from '../audio/types.ts';
import { keepAnalysis, openAnalysis } from './analysis.ts';
import { dispatch, JobGone } from './dispatch.ts';
import { billOf, failJob, succeed } from './end-job.ts';
import { readRecording } from './ingest-state.ts';
import type { JobPorts } from './job-ports.ts';
import type { JobRecord } from './job-record.ts';
import { type Assembly, diarizeParts, type JobFault, type OutputText, resultOf } from './results.ts';
import { beginTranscription, isTranscribed } from './transcribe.ts';
import { outputKey, partKey } from './work-keys.ts';

/** Last step of a job: clusters all parts, writes the output, ends the job. Running it twice writes the same bytes. */
export async function assembleJob(ports: JobPorts, job: JobRecord, pulse: () => Promise<void>): Promise<void> {
  await pulse();
  const startedAt = ports.now();
  const { recording, tag } = await readRecording(ports, job.id);
  const readPart: Assembly['readPart'] = (shard, offset, length) =>
    ports.objects.getRange(partKey(job.id, shard, tag), offset, length);
  const assembly = { ports, job, recording, readPart, pulse };
  const result = await endingOf(assembly, tag, startedAt).catch(async (error: unknown) => {
    if (!(await isPartMissing(ports, job.id, recording.shardCount, tag))) throw error;
    // The parts go with the end of their job, which is noted before they go.
    if ((await ports.store.find(job.id))?.status !== 'running') throw new JobGone(job.id);
    return 'lost' as const;
  });
  if (result === 'lost') {
    ports.log('warn', 'parts_lost', { jobId: job.id });
    await ports.progress.restart(job.id, tag);
    if (await ports.store.nextStep(job.id, ['assemble'], 'analyse', ports.now()))
      await ports.progress.expect(job.id, tag, recording.shardCount);
    return;
  }
  if (!result.ok) {
    await failJob(ports, job.id, result.error);
    return;
  }
  await result.value();
}

/**
 * What is left to do when all parts have been put together: to end the job with its output, or to have it transcribed.
 */
async function endingOf(
  assembly: Assembly,
  tag: string,
  startedAt: number,
): Promise<Result<() => Promise<void>, JobFault>> {
  const { ports, job, recording, pulse } = assembly;
  const log = () =>
    ports.log('info', 'job_assembled', {
      jobId: job.id,
      shards: recording.shardCount,
      totalMs: ports.now() - startedAt,
    });
  const { id, kind } = job;
  if (isTranscribed(job)) {
    const diarized = await diarizeParts(assembly, { voices: job.request.embeddings === true });
    if (!diarized.ok) return diarized;
    return {
      ok: true,
      value: async () => {
        await beginTranscription(ports, job, tag, diarized.value);
        log();
      },
    };
  }
  const output = await resultOf(assembly);
  if (!output.ok) return output;
  return {
    ok: true,
    value: async () => {
      await ports.objects.putStream(outputKey(job.id), withPulse(output.value, ports.now, pulse));
      if (kind === 'diarize') await keepAnalysis(ports, id, pulse);
      await ports.pause();
      log();
      const { durationSeconds } = recording;
      await succeed(ports, job, { outputKey: outputKey(job.id), ...billOf(job.kind, durationSeconds) });
    },
  };
}

async function isPartMissing(ports: JobPorts, jobId: string, shardCount: number, tag: string): Promise<boolean> {
  for (let shard = 0; shard < shardCount; shard++)
    if (!(await ports.objects.exists(partKey(jobId, shard, tag)))) return true;
  return false;
}

const PULSE_EVERY_MS = 5000;

/**
 * The same chunks, with a sign of life every few seconds: a day's output with all its values takes a while to be
 * stored.
 */
export async function* withPulse(chunks: OutputText, now: () => number, pulse: () => Promise<void>) {
  let pulsedAt = now();
  for await (const chunk of chunks) {
    yield chunk;
    if (now() - pulsedAt < PULSE_EVERY_MS) continue;
    pulsedAt = now();
    await pulse();
  }
}

/** A job that diarizes from the stored analysis of another job, `request.recountOf`. */
export type RecountJob = Extract<JobRecord, { kind: 'diarize' }>;

export const isRecount = (job: JobRecord): job is RecountJob =>
  job.kind === 'diarize' && job.request.recountOf !== undefined;

/** First step of a recount: there is no recording to read. */
export async function beginRecount(ports: JobPorts, job: RecountJob): Promise<void> {
  await ports.store.start(job.id, ports.now());
  if (await ports.store.nextStep(job.id, ['ingest'], 'assemble', ports.now()))
    await dispatch(ports, { step: 'assemble', jobId: job.id });
}

/** Last step of a recount: as for other jobs, but nothing is billed. */
export async function assembleRecount(ports: JobPorts, job: RecountJob, pulse: () => Promise<void>): Promise<void> {
  await pulse();
  const analysis = await openAnalysis(ports, job.request.recountOf ?? '');
  const output = analysis
    ? await resultOf({ ports, job, ...analysis, pulse })
    : ({
        ok: false,
        error: { code: 'analysis_gone', message: 'The analysis to be recounted is no longer stored.' },
      } as const);
  if (!output.ok) return failJob(ports, job.id, output.error);
  await ports.objects.putStream(outputKey(job.id), withPulse(output.value, ports.now, pulse));
  await succeed(ports, job, { outputKey: outputKey(job.id), billedSeconds: 0, creditSeconds: 0 });
}
