import type { Result } from '../audio/audio-ports.ts';
import type { CreateJob } from './app-services.ts';
import { detach } from './attachments.ts';
import { dispatch } from './dispatch.ts';
import type { JobPorts, JobRecord } from './ports.ts';

/**
 * Makes a job and sends its first step. With an idempotency key that was used for the same body, the job of that first
 * call.
 */
export async function createJob(
  ports: Pick<JobPorts, 'store' | 'queue' | 'objects' | 'now' | 'log'>,
  input: CreateJob,
  id: string,
): Promise<Result<JobRecord, { kind: 'idempotency_conflict' | 'payment_required' }>> {
  if (input.isReplayOnly) return replayed(ports.store, input, ports.now());
  const { stored, attachments } = detach(input, id);
  const { accountId, idempotency } = input;
  // Before the row: a job that exists has all that it needs.
  for (const { key, text } of attachments) await ports.objects.put(key, new TextEncoder().encode(text));
  const created = await ports.store.create({ ...stored, accountId, idempotency, id, now: ports.now() });
  if (!created.ok || created.value.id !== id) {
    await ports.objects.deleteMany(attachments.map(({ key }) => key));
    return created;
  }
  // Where the account has too much in work already, the job waits for an end among that.
  if (created.value.status === 'created') await dispatch(ports, { step: 'ingest', jobId: id });
  // A new job reports `created` (contract §4).
  return { ok: true, value: { ...created.value, status: 'created' } };
}

/**
 * The job that a call's key stands for. Nothing is made: between two looks at the key its job may be deleted, and a new
 * one would be free of charge.
 */
async function replayed(
  store: JobPorts['store'],
  { accountId, idempotency }: CreateJob,
  now: number,
): Promise<Result<JobRecord, { kind: 'idempotency_conflict' | 'payment_required' }>> {
  const replay = idempotency && (await store.findReplay(accountId, idempotency.key, now));
  const job = replay && (await store.findOwned(accountId, replay.jobId));
  if (!job) return { ok: false, error: { kind: 'payment_required' } };
  if (replay.bodyHash !== idempotency.bodyHash) return { ok: false, error: { kind: 'idempotency_conflict' } };
  return { ok: true, value: job };
}
