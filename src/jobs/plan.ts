import { outputSampleCount, probeAudio } from '../audio/index.ts';
import type { Result } from '../audio/types.ts';
import { RECORDING_MAX_BYTES } from './app-services.ts';
import { dispatch, dispatchShards } from './dispatch.ts';
import { failJob, removeWork } from './fail.ts';
import { INLINE_URL, inlineUrlKey, planKey, spoolKey } from './keys.ts';
import { outboxId } from './messages.ts';
import { Mutex } from './mutex.ts';
import type { JobPlan, JobPorts, JobRecord, SourceRef } from './ports.ts';
import { isOfParts, isPassing, type SourceError, SourceReadError } from './source-error.ts';
import { isTerminal } from './state.ts';

/** How large and how long a recording may be (contract §7). */
const LIMITS = {
  recording: {
    maxBytes: RECORDING_MAX_BYTES,
    maxSize: '1 GiB',
    maxSeconds: 24 * 3600,
    tooLong: 'The recording is longer than 24 hours; cut it into pieces.',
  },
  voice: {
    maxBytes: 100 * 1024 ** 2,
    maxSize: '100 MiB',
    maxSeconds: 30,
    tooLong: 'The recording is longer than 30 seconds, the most for a voiceprint; cut out a part of it.',
  },
} as const;
/** Audio of one shard; a multiple of the embedder's stretch, so that shards never change a result. */
export const SHARD_SECONDS = 300;
const SAMPLE_RATE_HZ = 16000;

/** Encoders without a note of it leave so much silence at both ends at most: 30 seconds stay 30 seconds. */
const PADDING_SECONDS = 0.2;

const MAX_FETCH_TRIES = 3;

/** The text of 8 MiB of audio, its bytes and what they decode to: several plans at once would fill an isolate. */
const inlineTurns = new Mutex();

/** Thrown to have the queue deliver the message again. */
export class RetryStep extends Error {
  constructor(
    reason: string,
    readonly delaySeconds: number,
  ) {
    super(reason);
    this.name = 'RetryStep';
  }
}

/**
 * First step of a job: find and measure the recording, cut it into shards, set the job running. A running job that has such a message is planned anew.
 *
 * @param attempt 1 for the first delivery of this message
 * @param signal ends a copy that is in work
 * @throws RetryStep on a passing fault of the network
 */
export async function planJob(ports: JobPorts, job: JobRecord, attempt: number, signal?: AbortSignal): Promise<void> {
  if (job.status === 'created' || job.status === 'pending') {
    await makePlan(ports, job, { attempt, signal }, 'start');
    return;
  }
  const id = outboxId({ step: 'plan', jobId: job.id });
  // Without its row the message is a leftover copy of the one that has set the job running.
  if (job.status === 'running' && (await ports.store.outboxRow(id))) await planAnew(ports, job, attempt, signal);
  else await ports.store.settle(id);
}

/**
 * Has a running job planned anew that was planned by another version of the service, or with other models. One message does so for all steps that find no
 * plan: after a deployment there are hundreds at once, and each would ask the server of the recording.
 */
export async function requestPlan(ports: JobPorts, jobId: string): Promise<void> {
  if (await ports.store.requestPlan(jobId, ports.now())) await dispatch(ports, { step: 'plan', jobId });
}

/**
 * Plans a running job that was planned by another version of the service, or with other models, and begins all its parts again.
 * Harmless when several steps do so at once.
 *
 * @param attempt 1 for the first delivery of the step's message
 * @param signal ends a copy that is in work
 * @throws RetryStep on a passing fault of the network
 */
export async function planAnew(ports: JobPorts, job: JobRecord, attempt: number, signal?: AbortSignal): Promise<void> {
  ports.log('info', 'job_planned_anew', { jobId: job.id });
  await makePlan(ports, job, { attempt, signal }, 'restart');
}

/** Whether the job has a plan of this version and these models. */
export const hasPlan = (ports: JobPorts, jobId: string): Promise<boolean> =>
  ports.objects.exists(planKey(jobId, ports.work));

interface Delivery {
  readonly attempt: number;
  readonly signal?: AbortSignal;
}

async function makePlan(
  ports: JobPorts,
  job: JobRecord,
  delivery: Delivery,
  begin: 'start' | 'restart',
): Promise<void> {
  // A run before or beside this one may have left its plan: there is one for all, whatever became of the source meanwhile.
  const plan = (await findPlan(ports, job.id)) ?? (await measure(ports, job, delivery));
  if (!plan) return;
  const { index, source, shards } = plan;
  const shardCount = shards.length;
  // The counter exists before the first part can be counted.
  await ports.progress.begin(job.id, shardCount);
  const { durationSeconds } = index;
  const started = await ports.store[begin](job.id, { shardCount, durationSeconds }, ports.now());
  if (!started) {
    await dropIfEnded(ports, job.id);
    return;
  }
  ports.log('info', 'job_planned', {
    jobId: job.id,
    shards: shardCount,
    durationSeconds,
    format: index.format,
    sourceBytes: source.sizeBytes,
  });
  await dispatchShards(ports, job.id, shardCount);
}

/**
 * Finds and measures the recording, and stores its plan.
 *
 * @returns the plan that is stored, which may be that of another run; undefined where the job has failed
 */
async function measure(ports: JobPorts, job: JobRecord, { attempt, signal }: Delivery): Promise<JobPlan | undefined> {
  const limits = { ...LIMITS[job.kind === 'voiceprint' ? 'voice' : 'recording'], signal };
  const found = await findAndProbe(ports, job, limits, false).catch(async (error: unknown) => {
    if (!(error instanceof SourceReadError && isOfParts(error.error.kind))) throw error;
    const whole = await findAndProbe(ports, job, limits, true);
    // Where the whole is no better, what is wrong with the parts says more.
    return !whole.ok && error.error.kind === 'incomplete' ? ({ ok: false, error: error.error } as const) : whole;
  });
  if (!found.ok) {
    if (isPassing(found.error.kind) && attempt < MAX_FETCH_TRIES) {
      throw new RetryStep(found.error.message, attempt);
    }
    await failJob(ports, job.id, { code: `source_${found.error.kind}`, message: found.error.message });
    return undefined;
  }
  const { source, probed } = found.value;
  if (!probed.ok) {
    await failJob(ports, job.id, { code: `audio_${probed.error.kind}`, message: probed.error.message });
    return undefined;
  }
  const index = probed.value;
  if (index.durationSeconds > limits.maxSeconds + PADDING_SECONDS) {
    await failJob(ports, job.id, { code: 'audio_too_long', message: limits.tooLong });
    return undefined;
  }
  const totalSamples = outputSampleCount(index);
  const plan: JobPlan = { source, index, totalSamples, shards: cutShards(totalSamples) };
  const isFirst = await ports.objects.putNew(
    planKey(job.id, ports.work),
    new TextEncoder().encode(JSON.stringify(plan)),
  );
  return isFirst ? plan : readPlan(ports, job.id);
}

/** A job that was canceled or deleted meanwhile needs no plan; one that another run has started does. */
async function dropIfEnded(ports: JobPorts, jobId: string): Promise<void> {
  const job = await ports.store.find(jobId);
  if (!job || isTerminal(job.status)) await removeWork(ports, jobId);
}

/** Shards `[start, end)` at 16 kHz that cover the recording without overlap; a short one is a single shard. */
export function cutShards(totalSamples: number): { startSample: number; endSample: number }[] {
  const length = SHARD_SECONDS * SAMPLE_RATE_HZ;
  const shards = [];
  for (let startSample = 0; startSample < totalSamples; startSample += length) {
    shards.push({ startSample, endSample: Math.min(startSample + length, totalSamples) });
  }
  return shards;
}

async function findAndProbe(ports: JobPorts, job: JobRecord, limits: SourceLimits, isCopied: boolean) {
  const source = await findSource(ports, job, limits, isCopied);
  if (!source.ok) return source;
  const recording = ports.sources.open(source.value);
  const probed = await probeAudio(recording, ports.codecs().decoder).finally(() => recording.close?.());
  return { ok: true, value: { source: source.value, probed } } as const;
}

interface SourceLimits {
  readonly maxBytes: number;
  readonly maxSize: string;
  readonly signal?: AbortSignal;
}

async function findSource(
  ports: JobPorts,
  job: JobRecord,
  limits: SourceLimits,
  isCopied: boolean,
): Promise<Result<SourceRef, SourceError>> {
  const { url } = job.request;
  if (url.startsWith('media://')) {
    // A job that was accepted in time may be planned after it.
    const media = await ports.media.resolve(job.accountId, url.slice('media://'.length), job.createdAt);
    if (!media) {
      return { ok: false, error: { kind: 'not_found', message: `No media named ${url} has been uploaded.` } };
    }
    // An upload that went to the bucket directly is measured here for the first time.
    if (media.sizeBytes > limits.maxBytes) {
      const message = `The recording is larger than the limit of ${limits.maxSize}.`;
      return { ok: false, error: { kind: 'too_large', message } };
    }
    const { key, sizeBytes, etag } = media;
    return { ok: true, value: { kind: 'object', key, sizeBytes, etag } };
  }
  if (url === INLINE_URL) return inlineTurns.run(ports.pause, ports.sleep, () => storeInline(ports, job.id, limits));
  return ports.sources.resolve(url, spoolKey(job.id), { ...limits, isCopied });
}

async function storeInline(
  ports: JobPorts,
  jobId: string,
  limits: { readonly maxBytes: number },
): Promise<Result<SourceRef, SourceError>> {
  const inline = await ports.objects.get(inlineUrlKey(jobId));
  if (!inline) return { ok: false, error: { kind: 'gone', message: 'The audio of this request is no longer stored.' } };
  return ports.sources.resolve(new TextDecoder().decode(inline), spoolKey(jobId), limits);
}

/** @throws when the plan is gone: the job has ended and its work was removed */
export function readPlan(ports: JobPorts, jobId: string): Promise<JobPlan> {
  return ports.plans.get(planKey(jobId, ports.work), async () => {
    const plan = await findPlan(ports, jobId);
    if (!plan) throw new Error(`job ${jobId} has no plan`);
    return plan;
  });
}

async function findPlan(ports: JobPorts, jobId: string): Promise<JobPlan | undefined> {
  const bytes = await ports.objects.get(planKey(jobId, ports.work));
  return bytes && (JSON.parse(new TextDecoder().decode(bytes)) as JobPlan);
}
