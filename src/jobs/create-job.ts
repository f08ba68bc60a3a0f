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

/** What it takes to make a job. */
export type CreatePorts = DispatchPorts & StepPorts<'objects', JobCreation & JobReader>;

/**
 * Makes a job and sends its first step. With an idempotency key that was used for the same body, the job of that first
 * call.
 */
export async function createJob(
  ports: CreatePorts,
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
 * Takes a `data:` URL and voiceprints out of a request. They would not fit into a row or a queue message; and below the
 * job's working data they go when the job ends.
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

/** @throws when the job has ended: its voiceprints are erased */
export async function readVoiceprints(
  ports: Pick<JobPorts, 'objects'>,
  jobId: string,
): Promise<readonly SubmittedVoiceprint[]> {
  const bytes = await ports.objects.get(voiceprintsKey(jobId));
  if (!bytes) throw new Error(`job ${jobId} has no voiceprints`);
  return JSON.parse(new TextDecoder().decode(bytes)) as SubmittedVoiceprint[];
}

/**
 * Makes a job that repeats a diarization with other bounds of the speaker count, without the recording.
 *
 * @param source a job of the account
 */
export async function createRecount(
  ports: CreatePorts & Pick<JobPorts, 'outputTtlMs'>,
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
