import type { Result } from '../audio/types.ts';
import type { CreateJob } from './app-services.ts';
import { dispatch } from './dispatch.ts';
import type { JobPorts, JobRecord } from './ports.ts';

/**
 * Makes a job and sends its first step. With an idempotency key that was used for the same body, the job of that first call.
 */
export async function createJob(
  ports: Pick<JobPorts, 'store' | 'queue' | 'now' | 'log'>,
  input: CreateJob,
  id: string,
): Promise<Result<JobRecord, { kind: 'idempotency_conflict' }>> {
  const created = await ports.store.create({ ...input, id, now: ports.now() });
  if (created.ok && created.value.id === id) await dispatch(ports, { step: 'plan', jobId: id });
  return created;
}
