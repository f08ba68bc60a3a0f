import type { JobKind } from './app-services.ts';
import type { DispatchPorts } from './dispatch.ts';
import { dispatch, dispatchAll } from './dispatch.ts';
import type { JobPorts, StepPorts } from './job-ports.ts';
import type { JobRecord } from './job-record.ts';
import type { JobAdmission, JobEndings, JobOutcome, JobReader } from './job-store.ts';
import { analysisKey, outputKey, workPrefix } from './work-keys.ts';

/** Ports to end a job and to start waiting jobs of its account. */
export type EndPorts = DispatchPorts & StepPorts<'objects' | 'progress', JobEndings & JobReader & JobAdmission>;

/** Ends a job whose output is stored, sends its webhook and removes its working data. */
export async function succeed(ports: EndPorts, job: JobRecord, outcome: JobOutcome): Promise<void> {
  if (!(await ports.store.succeed(job.id, outcome, ports.now()))) {
    await dropOrphan(ports, job.id);
    return;
  }
  const { billedSeconds, transcribedSeconds } = outcome;
  ports.log('info', 'job_succeeded', { jobId: job.id, billedSeconds, transcribedSeconds });
  await afterEnd(ports, job);
}

/** Deletes an output that was stored while its job was canceled or deleted. */
async function dropOrphan(ports: EndPorts, jobId: string): Promise<void> {
  const job = await ports.store.find(jobId);
  if (job?.status !== 'succeeded') await ports.objects.deleteMany([outputKey(jobId), analysisKey(jobId)]);
}

/**
 * Ends a job as `failed`, sends its webhook and removes its working data. No effect if the job has ended.
 */
export async function failJob(ports: EndPorts, jobId: string, error: { code: string; message: string }): Promise<void> {
  const failed = await ports.store.fail(jobId, error, ports.now());
  if (!failed) return;
  ports.log('info', 'job_failed', { jobId, code: error.code });
  const job = await ports.store.find(jobId);
  if (job) await afterEnd(ports, job);
}

/**
 * Follows a job's end, which is stored already: sends its webhook, starts waiting jobs of the account and removes the
 * working data. After a crash, the sweep does the rest.
 */
export async function afterEnd(
  ports: EndPorts,
  { id, accountId, webhookUrl }: Pick<JobRecord, 'id' | 'accountId' | 'webhookUrl'>,
): Promise<void> {
  if (webhookUrl) await dispatch(ports, { step: 'webhook', jobId: id, attempt: 0 });
  await admitWaiting(ports, accountId);
  // If this fails, the object's alarm notices the end.
  await ports.progress.end(id).catch((error: unknown) => {
    ports.log('warn', 'progress_not_ended', { jobId: id, error: String(error) });
  });
  await removeWork(ports, id);
}

/**
 * Deletes the working data of an ended job: copy, chunks and parts of its recording. After a crash, the sweep deletes
 * the rest.
 */
export async function removeWork(ports: Pick<JobPorts, 'objects'>, jobId: string): Promise<void> {
  for (;;) {
    const keys = await ports.objects.list(workPrefix(jobId), 1000);
    if (keys.length === 0) return;
    await ports.objects.deleteMany(keys);
  }
}

const CANCELED = { code: 'canceled', message: 'The job was canceled.' } as const;

/**
 * Ends an unfinished job as `canceled`, sends its webhook and removes its working data; running steps notice it within
 * seconds. No effect if the job has ended.
 *
 * @returns the current job; undefined if the account has no job of this id
 */
export async function cancelJob(ports: EndPorts, accountId: string, jobId: string): Promise<JobRecord | undefined> {
  const job = await ports.store.findOwned(accountId, jobId);
  if (!job) return undefined;
  if (await ports.store.cancel(jobId, CANCELED, ports.now())) {
    ports.log('info', 'job_canceled', { jobId });
    await afterEnd(ports, job);
  }
  return ports.store.findOwned(accountId, jobId);
}

/**
 * Deletes a job: its output, its working data (copied or inline source, chunks, parts) and the content of its record.
 * Running steps stop as for a canceled job; no webhook is sent. The usage record stays, and an uploaded recording until
 * it expires, because other jobs may use it.
 *
 * @returns false if the account has no job of this id
 */
export async function deleteJob(ports: EndPorts, accountId: string, jobId: string): Promise<boolean> {
  if (!(await ports.store.remove(accountId, jobId, ports.now()))) return false;
  ports.log('info', 'job_deleted', { jobId });
  // The row is deleted first, so that nothing reads these objects; the sweep deletes what a crash leaves.
  await ports.objects.deleteMany([outputKey(jobId), analysisKey(jobId)]);
  await afterEnd(ports, { id: jobId, accountId });
  return true;
}

/** Minimum that a successful job on a recording is billed (contract §7). */
const MIN_BILLED_SECONDS = 20;
/** Price of a voiceprint in credit, which is counted in seconds of audio. */
const VOICEPRINT_CREDIT_SECONDS = 20;
/** The lowest price in credit; an account with less credit cannot pay. */
export const MIN_CREDIT_SECONDS = Math.min(MIN_BILLED_SECONDS, VOICEPRINT_CREDIT_SECONDS);

/** Bill of a successful job or stream: the duration of its audio, or one voiceprint. */
export function billOf(
  kind: JobKind | 'live',
  durationSeconds: number,
): { readonly billedSeconds: number; readonly creditSeconds: number } {
  if (kind === 'voiceprint') return { billedSeconds: 0, creditSeconds: VOICEPRINT_CREDIT_SECONDS };
  const billedSeconds = Math.max(MIN_BILLED_SECONDS, durationSeconds);
  return { billedSeconds, creditSeconds: billedSeconds };
}

type AdmitPorts = DispatchPorts & { readonly store: JobAdmission };

/**
 * Starts waiting jobs of an account as far as its limit of work allows. Faults are only logged: the sweep tries again.
 */
export async function admitWaiting(ports: AdmitPorts, accountId: string): Promise<void> {
  try {
    const ids = await ports.store.admit(accountId, ports.now());
    await dispatchAll(
      ports,
      ids.map((jobId) => ({ message: { step: 'ingest', jobId }, delaySeconds: 0 })),
    );
  } catch (error) {
    ports.log('warn', 'waiting_jobs_not_admitted', { error: String(error) });
  }
}

const SWEEP = 'admit';
const ACCOUNTS_PER_PAGE = 50;
/** Each account needs a few statements, and an invocation may run 1,000. */
const MAX_ACCOUNTS = 100;

/**
 * `admitWaiting` for all accounts with room for a waiting job. A job that ends calls `admitWaiting` itself; this covers
 * the calls that failed. A run continues where the last one ended, so that every account gets its turn.
 */
export async function admitAll(ports: AdmitPorts): Promise<void> {
  let after = await ports.store.sweepPosition(SWEEP);
  let remaining = MAX_ACCOUNTS;
  // First from the position to the end, then once from the beginning.
  for (let rounds = after === '' ? 1 : 2; rounds > 0 && remaining > 0; ) {
    const page = await ports.store.waitingAccounts(Math.min(ACCOUNTS_PER_PAGE, remaining), after);
    for (const accountId of page) await admitWaiting(ports, accountId);
    remaining -= page.length;
    after = page.at(-1) ?? '';
    if (page.length > 0) continue;
    rounds--;
  }
  await ports.store.setSweepPosition(SWEEP, after);
}
