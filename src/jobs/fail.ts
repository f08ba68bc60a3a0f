import { dispatch } from './dispatch.ts';
import { workPrefix } from './keys.ts';
import type { ControlPorts, JobPorts } from './ports.ts';

/**
 * Ends a job as `failed`, tells its webhook and removes what it had in work. Harmless when the job has ended already.
 */
export async function failJob(ports: JobPorts, jobId: string, error: { code: string; message: string }): Promise<void> {
  const failed = await ports.store.fail(jobId, error, ports.now());
  if (!failed) return;
  ports.log('info', 'job_failed', { jobId, code: error.code });
  await notify(ports, jobId);
  await removeWork(ports, jobId);
}

/** Sends the webhook message of a job that has just ended, where it asked for one. */
export async function notify(ports: ControlPorts, jobId: string): Promise<void> {
  const job = await ports.store.find(jobId);
  if (job?.webhookUrl) await dispatch(ports, { step: 'webhook', jobId, attempt: 0 });
}

/**
 * Deletes what an ended job had in work: copy, chunks and parts of its recording. What a crash leaves behind is found
 * by the sweep.
 */
export async function removeWork(ports: Pick<ControlPorts, 'objects'>, jobId: string): Promise<void> {
  for (;;) {
    const keys = await ports.objects.list(workPrefix(jobId), 1000);
    if (keys.length === 0) return;
    await ports.objects.deleteMany(keys);
  }
}
