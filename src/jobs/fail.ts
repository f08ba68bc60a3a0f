import { admitWaiting } from './admit.ts';
import { dispatch } from './dispatch.ts';
import { workPrefix } from './keys.ts';
import type { ControlPorts, JobRecord } from './ports.ts';

/**
 * Ends a job as `failed`, tells its webhook and removes what it had in work. Harmless when the job has ended already.
 */
export async function failJob(
  ports: ControlPorts,
  jobId: string,
  error: { code: string; message: string },
): Promise<void> {
  const failed = await ports.store.fail(jobId, error, ports.now());
  if (!failed) return;
  ports.log('info', 'job_failed', { jobId, code: error.code });
  const job = await ports.store.find(jobId);
  if (job) await afterEnd(ports, job);
}

/**
 * What follows from a job's end, which is noted already: its webhook, where it asked for one, the account's next job,
 * and nothing is kept of its work. What a crash leaves of this, the sweep does.
 */
export async function afterEnd(
  ports: ControlPorts,
  { id, accountId, webhookUrl }: Pick<JobRecord, 'id' | 'accountId' | 'webhookUrl'>,
): Promise<void> {
  if (webhookUrl) await dispatch(ports, { step: 'webhook', jobId: id, attempt: 0 });
  await admitWaiting(ports, accountId);
  // Its alarm finds it out otherwise.
  await ports.progress.end(id).catch((error: unknown) => {
    ports.log('warn', 'progress_not_ended', { jobId: id, error: String(error) });
  });
  await removeWork(ports, id);
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
