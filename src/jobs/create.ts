import type { Result } from '../audio/types.ts';
import type { CreateJob } from './app-services.ts';
import { dispatch } from './dispatch.ts';
import { INLINE_URL, inlineUrlKey } from './keys.ts';
import type { JobPorts, JobRecord } from './ports.ts';

/**
 * Makes a job and sends its first step. With an idempotency key that was used for the same body, the job of that first call.
 */
export async function createJob(
  ports: Pick<JobPorts, 'store' | 'queue' | 'objects' | 'now' | 'log'>,
  input: CreateJob,
  id: string,
): Promise<Result<JobRecord, { kind: 'idempotency_conflict' }>> {
  const { url } = input.request;
  const isInline = url.startsWith(INLINE_URL);
  // Megabytes of audio do not fit into a row of D1, and would outlive the job there.
  if (isInline) await ports.objects.put(inlineUrlKey(id), new TextEncoder().encode(url));
  const request = isInline ? { ...input.request, url: INLINE_URL } : input.request;
  const created = await ports.store.create({ ...input, request, id, now: ports.now() });
  if (isInline && !(created.ok && created.value.id === id)) await ports.objects.deleteMany([inlineUrlKey(id)]);
  if (created.ok && created.value.id === id) await dispatch(ports, { step: 'plan', jobId: id });
  return created;
}
