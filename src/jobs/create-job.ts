import type { Result } from '../audio/audio-ports.ts';
import { isDataUrl } from '../contract/data-url.ts';
import type { RecountRequest } from '../contract/diarize.ts';
import type { SubmittedVoiceprint } from '../contract/identify.ts';
import type { CreateJob, JobSpec } from './app-services.ts';
import type { DispatchPorts } from './dispatch.ts';
import { dispatch } from './dispatch.ts';
import type { JobPorts, StepPorts } from './job-ports.ts';
import type { JobRecord, StoredSpec } from './job-record.ts';
import type { JobCreation, JobReader } from './job-store.ts';
import { liveOutputKey } from './stored-output.ts';
import { analysisKey, INLINE_URL, inlineUrlKey, voiceprintsKey } from './work-keys.ts';

/** Ports to create a job. */
export type CreatePorts = DispatchPorts & StepPorts<'objects', JobCreation & JobReader>;

/**
 * Creates a job and sends its first step. If its idempotency key was used for the same body, returns the job of that
 * first call.
 */
export async function createJob(
  ports: CreatePorts,
  input: CreateJob,
  id: string,
): Promise<Result<JobRecord, { kind: 'idempotency_conflict' | 'payment_required' }>> {
  if (input.isReplayOnly) return findReplayed(ports.store, input, ports.now());
  const { stored, attachments } = detach(input, id);
  const { accountId, idempotency } = input;
  // Store these before the row, so that a job that exists is complete.
  for (const { key, text } of attachments) await ports.objects.put(key, new TextEncoder().encode(text));
  const created = await ports.store.create({ ...stored, accountId, idempotency, id, now: ports.now() });
  if (!created.ok || created.value.id !== id) {
    await ports.objects.deleteMany(attachments.map(({ key }) => key));
    return created;
  }
  // If the account has too much unfinished work, the job waits until another one ends.
  if (created.value.status === 'created') await dispatch(ports, { step: 'ingest', jobId: id });
  // A new job reports `created` (contract §4).
  return { ok: true, value: { ...created.value, status: 'created' } };
}

/**
 * The job of a call's idempotency key. Creates none: if the job was deleted since the caller looked up the key, a new
 * one would be free of charge.
 */
async function findReplayed(
  store: CreatePorts['store'],
  { accountId, idempotency }: CreateJob,
  now: number,
): Promise<Result<JobRecord, { kind: 'idempotency_conflict' | 'payment_required' }>> {
  const replay = idempotency && (await store.findReplay(accountId, idempotency.key, now));
  const job = replay && (await store.findOwned(accountId, replay.jobId));
  if (!job) return { ok: false, error: { kind: 'payment_required' } };
  if (replay.bodyHash !== idempotency.bodyHash) return { ok: false, error: { kind: 'idempotency_conflict' } };
  return { ok: true, value: job };
}

interface Attachment {
  readonly key: string;
  readonly text: string;
}

/**
 * Moves a `data:` URL and voiceprints of a request into objects. They would not fit into a row or a queue message, and
 * as working data they are deleted when the job ends.
 */
export function detach(
  spec: JobSpec,
  jobId: string,
): { readonly stored: StoredSpec; readonly attachments: Attachment[] } {
  const attachments: Attachment[] = [];
  let { url } = spec.request;
  if (isDataUrl(url)) {
    attachments.push({ key: inlineUrlKey(jobId), text: url });
    url = INLINE_URL;
  }
  if (spec.kind !== 'identify')
    return { stored: { ...spec, request: { ...spec.request, url } } as StoredSpec, attachments };
  const { voiceprints, ...request } = spec.request;
  attachments.push({ key: voiceprintsKey(jobId), text: JSON.stringify(voiceprints) });
  return { stored: { kind: 'identify', request: { ...request, url } }, attachments };
}

/** @throws if the job has ended, because its voiceprints are deleted then */
export async function readVoiceprints(
  ports: Pick<JobPorts, 'objects'>,
  jobId: string,
): Promise<readonly SubmittedVoiceprint[]> {
  const bytes = await ports.objects.get(voiceprintsKey(jobId));
  if (!bytes) throw new Error(`job ${jobId} has no voiceprints`);
  return JSON.parse(new TextDecoder().decode(bytes)) as SubmittedVoiceprint[];
}

/**
 * Creates a job that repeats a diarization with other bounds of the speaker count, without the recording.
 *
 * @param source a job of the account
 */
export async function createRecount(
  ports: CreatePorts & Pick<JobPorts, 'outputTtlMs'>,
  source: JobRecord,
  bounds: RecountRequest,
  options: Pick<CreateJob, 'idempotency'> & { readonly id: string },
): Promise<Result<JobRecord, { kind: 'idempotency_conflict' | 'payment_required' | 'no_analysis' }>> {
  const noAnalysis = { ok: false, error: { kind: 'no_analysis' } } as const;
  if (source.kind !== 'diarize' || source.status !== 'succeeded') return noAnalysis;
  const recountOf = source.request.recountOf ?? source.id;
  const origin = await ports.store.findOwned(source.accountId, recountOf);
  if (liveOutputKey(ports, origin) === undefined || !(await ports.objects.exists(analysisKey(recountOf))))
    return noAnalysis;
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
