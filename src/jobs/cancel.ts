import { afterEnd } from './fail.ts';
import { analysisKey, outputKey } from './keys.ts';
import type { ControlPorts, JobRecord } from './ports.ts';

const CANCELED = { code: 'canceled', message: 'The job was canceled.' } as const;

/**
 * Ends a job that still works as `canceled`, tells its webhook and removes what it had in work; steps that run notice
 * it within seconds. A job that has ended, also in this very moment, stays as it is.
 *
 * @returns the job as it is now; undefined when the account has no such job
 */
export async function cancelJob(ports: ControlPorts, accountId: string, jobId: string): Promise<JobRecord | undefined> {
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
 * Steps that run stop as for a canceled job, without a webhook. The usage record stays, and so does an uploaded
 * recording: other jobs may use it until its own end.
 *
 * @returns false when the account has no such job
 */
export async function deleteJob(ports: ControlPorts, accountId: string, jobId: string): Promise<boolean> {
  if (!(await ports.store.remove(accountId, jobId, ports.now()))) return false;
  ports.log('info', 'job_deleted', { jobId });
  // The row is deleted first, so that nothing reads these objects; the sweep deletes what a crash leaves.
  await ports.objects.deleteMany([outputKey(jobId), analysisKey(jobId)]);
  await afterEnd(ports, { id: jobId, accountId });
  return true;
}
