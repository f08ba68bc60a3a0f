import type { Result } from '../audio/audio-ports.ts';
import type { RecountRequest } from '../contract/recount.ts';
import { openAnalysis } from './analysis.ts';
import type { CreateJob } from './app-services.ts';
import { succeed, withPulse } from './assemble.ts';
import { createJob } from './create.ts';
import { dispatch } from './dispatch.ts';
import { failJob } from './fail.ts';
import { liveOutputKey } from './job-output.ts';
import { analysisKey, outputKey } from './keys.ts';
import type { ControlPorts, JobPorts, JobRecord } from './ports.ts';
import { resultOf } from './results/index.ts';

/** A job that diarizes from the stored analysis of another job, `request.recountOf`. */
export type RecountJob = Extract<JobRecord, { kind: 'diarize' }>;

export const isRecount = (job: JobRecord): job is RecountJob =>
  job.kind === 'diarize' && job.request.recountOf !== undefined;

/**
 * Makes a job that repeats a diarization with other bounds of the speaker count, without the recording.
 *
 * @param source a job of the account
 */
export async function createRecount(
  ports: ControlPorts,
  source: JobRecord,
  bounds: RecountRequest,
  options: Pick<CreateJob, 'idempotency'> & { readonly id: string },
): Promise<Result<JobRecord, { kind: 'idempotency_conflict' | 'payment_required' | 'no_analysis' }>> {
  const gone = { ok: false, error: { kind: 'no_analysis' } } as const;
  if (source.kind !== 'diarize' || source.status !== 'succeeded') return gone;
  const recountOf = source.request.recountOf ?? source.id;
  const origin = await ports.store.findOwned(source.accountId, recountOf);
  if (liveOutputKey(ports, origin) === undefined || !(await ports.objects.exists(analysisKey(recountOf)))) return gone;
  const request = {
    ...source.request,
    ...bounds,
    recountOf,
    transcription: false,
    transcriptionConfig: undefined,
    webhook: undefined,
    webhookStatusOnly: false,
  };
  const input: CreateJob = { kind: 'diarize', request, accountId: source.accountId, idempotency: options.idempotency };
  return createJob(ports, input, options.id);
}

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
