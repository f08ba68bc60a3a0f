import type { Result } from '../audio/audio-ports.ts';
import { keepAnalysis, openAnalysis } from './analysis.ts';
import { dispatch, JobGone } from './dispatch.ts';
import type { EndPorts } from './end-job.ts';
import { billOf, failJob, succeed } from './end-job.ts';
import { readRecording } from './ingest-state.ts';
import type { JobPorts, StepPorts } from './job-ports.ts';
import type { JobRecord } from './job-record.ts';
import type { JobIngest, JobSteps } from './job-store.ts';
import { type Assembly, diarizeParts, type JobFault, type OutputText, resultOf } from './results.ts';
import { beginTranscription, isTranscribed } from './transcribe.ts';
import { outputKey, partKey } from './work-keys.ts';

type AssemblyPorts = EndPorts &
  StepPorts<'plda' | 'identification' | 'work' | 'pause', Pick<JobIngest, 'start'> & Pick<JobSteps, 'nextStep'>>;

/** Last step of a job: clusters all parts, writes the output, ends the job. Running it twice writes the same bytes. */
export async function assembleJob(ports: AssemblyPorts, job: JobRecord, pulse: () => Promise<void>): Promise<void> {
  await pulse();
  const startedAt = ports.now();
  const { recording, tag } = await readRecording(ports, job.id);
  const readPart: Assembly['readPart'] = (shard, offset, length) =>
    ports.objects.getRange(partKey(job.id, shard, tag), offset, length);
  const assembly = { ports, job, recording, readPart, pulse };
  const ending = await endingOf(ports, assembly, tag, startedAt).catch(async (error: unknown) => {
    if (!(await isPartMissing(ports, job.id, recording.shardCount, tag))) throw error;
    // The end of a job is stored before its parts are deleted.
    if ((await ports.store.find(job.id))?.status !== 'running') throw new JobGone(job.id);
    return 'lost' as const;
  });
  if (ending !== 'lost') return finish(ports, job, ending);
  ports.log('warn', 'parts_lost', { jobId: job.id });
  await ports.progress.restart(job.id, tag);
  if (await ports.store.nextStep(job.id, ['assemble'], 'analyse', ports.now()))
    await ports.progress.expect(job.id, tag, recording.shardCount);
}

/** The remaining work after the clustering, or why there is no result. */
type Ending = Result<() => Promise<void>, JobFault>;

/** Clusters the parts. The returned work ends the job with its output, or begins the transcription. */
async function endingOf(ports: AssemblyPorts, assembly: Assembly, tag: string, startedAt: number): Promise<Ending> {
  const { job, recording, pulse } = assembly;
  const { id, kind } = job;
  const { shardCount, durationSeconds } = recording;
  const log = () =>
    ports.log('info', 'job_assembled', { jobId: id, shards: shardCount, totalMs: ports.now() - startedAt });
  if (!isTranscribed(job))
    return outputOf(ports, assembly, billOf(kind, durationSeconds), async () => {
      if (kind === 'diarize') await keepAnalysis(ports, id, pulse);
      await ports.pause();
      log();
    });
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

/** @param onStored called after the output is stored and before the job ends */
async function outputOf(
  ports: AssemblyPorts,
  assembly: Assembly,
  bill: ReturnType<typeof billOf>,
  onStored: () => Promise<void> = async () => undefined,
): Promise<Ending> {
  const { job, pulse } = assembly;
  const output = await resultOf(assembly);
  if (!output.ok) return output;
  return {
    ok: true,
    value: async () => {
      await ports.objects.putStream(outputKey(job.id), withPulse(output.value, ports.now, pulse));
      await onStored();
      await succeed(ports, job, { outputKey: outputKey(job.id), ...bill });
    },
  };
}

async function finish(ports: AssemblyPorts, job: JobRecord, ending: Ending): Promise<void> {
  if (!ending.ok) return failJob(ports, job.id, ending.error);
  await ending.value();
}

async function isPartMissing(
  ports: Pick<JobPorts, 'objects'>,
  jobId: string,
  shardCount: number,
  tag: string,
): Promise<boolean> {
  for (let shard = 0; shard < shardCount; shard++)
    if (!(await ports.objects.exists(partKey(jobId, shard, tag)))) return true;
  return false;
}

const PULSE_EVERY_MS = 5000;

/**
 * The same chunks, with a call of `pulse` every few seconds: storing the output of a long recording takes longer than
 * the lease.
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
export async function beginRecount(ports: AssemblyPorts, job: RecountJob): Promise<void> {
  await ports.store.start(job.id, ports.now());
  if (await ports.store.nextStep(job.id, ['ingest'], 'assemble', ports.now()))
    await dispatch(ports, { step: 'assemble', jobId: job.id });
}

/** Last step of a recount: as for other jobs, but nothing is billed. */
export async function assembleRecount(
  ports: AssemblyPorts,
  job: RecountJob,
  pulse: () => Promise<void>,
): Promise<void> {
  await pulse();
  const analysis = await openAnalysis(ports, job.request.recountOf ?? '');
  const ending: Ending = analysis
    ? await outputOf(ports, { ports, job, ...analysis, pulse }, { billedSeconds: 0, creditSeconds: 0 })
    : {
        ok: false,
        error: { code: 'analysis_gone', message: 'The analysis to be recounted is no longer stored.' },
      };
  await finish(ports, job, ending);
}
