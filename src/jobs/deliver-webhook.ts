import type { DispatchPorts } from './dispatch.ts';
import { dispatch } from './dispatch.ts';
import type { RetryReason, WebhookMessage } from './job-messages.ts';
import { outboxId } from './job-messages.ts';
import type { StepPorts } from './job-ports.ts';
import type { JobRecord } from './job-record.ts';
import { isTerminal } from './job-record.ts';
import type { JobDeliveries, JobOutbox, JobSteps } from './job-store.ts';
import { Mutex } from './mutex.ts';
import { signedContent, signWebhook } from './webhook-signature.ts';

type DeliveryPorts = DispatchPorts &
  StepPorts<
    'objects' | 'webhook' | 'webhookSecret' | 'previousWebhookSecret' | 'sleep' | 'outputTtlMs',
    JobDeliveries & Pick<JobOutbox, 'outboxRow'> & Pick<JobSteps, 'settle'>
  >;

/** Pauses before the retries: at once, after one minute, after five (contract §8). */
const RETRY_DELAYS_SECONDS = [0, 60, 300] as const;
/** Larger outputs are left out, and the receiver fetches them: the body is signed as a whole in memory. */
const MAX_OUTPUT_BYTES = 8 * 1024 * 1024;
/**
 * Larger bodies are delivered one at a time in an isolate: several slow receivers at once would keep too much in
 * memory.
 */
const LARGE_OUTPUT_BYTES = 1024 * 1024;
const largeBodies = new Mutex();

/**
 * Delivers a job's result to its webhook, or schedules the next attempt. The receiver never changes the job. After a
 * crash between the receiver's answer and the database write, the delivery is repeated; receivers recognise the job id.
 *
 * @param job undefined if it was deleted meanwhile
 */
export async function deliverWebhook(
  ports: DeliveryPorts,
  message: WebhookMessage,
  job: JobRecord | undefined,
): Promise<void> {
  const id = outboxId(message);
  const versions = job ? await ports.store.webhookSecretVersions(job.accountId, ports.now()) : [];
  if (!job?.webhookUrl || versions.length === 0 || !isTerminal(job.status)) {
    await ports.store.settle(id);
    return;
  }
  const { webhookUrl } = job;
  const outputBytes = await outputBytesOf(ports, job);
  const isLarge = outputBytes > LARGE_OUTPUT_BYTES && outputBytes <= MAX_OUTPUT_BYTES;
  const post = (bytes: number) => postSigned(ports, { ...job, webhookUrl }, message, versions, bytes);
  // While the call waits for its turn, the job may be deleted or its output may expire.
  const postInTurn = async () => ((await isDue(ports, message)) ? post(await outputBytesOf(ports, job)) : undefined);
  const answer = await (isLarge ? largeBodies.run({ sleep: ports.sleep }, postInTurn) : post(outputBytes));
  if (!answer) return;
  if (answer.ok && answer.value.status >= 200 && answer.value.status < 300) {
    ports.log('info', 'webhook_delivered', { jobId: job.id, attempt: message.attempt });
    await ports.store.settle(id);
    return;
  }
  const reason: RetryReason = answer.ok ? 'http_error' : answer.error.reason;
  const detail = answer.ok ? `status ${answer.value.status}` : answer.error.detail;
  ports.log('warn', 'webhook_failed', { jobId: job.id, attempt: message.attempt, reason, detail });
  const delaySeconds = RETRY_DELAYS_SECONDS[message.attempt];
  if (delaySeconds === undefined) {
    await ports.store.settle(id);
    return;
  }
  const next: WebhookMessage = { step: 'webhook', jobId: job.id, attempt: message.attempt + 1, reason };
  if (!(await ports.store.reschedule(id, message, next, ports.now() + delaySeconds * 1000))) return;
  await dispatch(ports, next, delaySeconds);
}

/** False for a duplicate message: its row was settled, or belongs to a later attempt. */
async function isDue(ports: DeliveryPorts, message: WebhookMessage): Promise<boolean> {
  const row = (await ports.store.outboxRow(outboxId(message)))?.message;
  return row?.step === 'webhook' && row.attempt === message.attempt;
}

/** @param versions versions of the secret to sign with, the current one first */
async function postSigned(
  ports: DeliveryPorts,
  job: JobRecord & { readonly webhookUrl: string },
  message: WebhookMessage,
  versions: readonly number[],
  outputBytes: number,
) {
  const timestampSeconds = Math.floor(ports.now() / 1000);
  const { content, body } = signedContent(timestampSeconds, await bodyParts(ports, job, outputBytes));
  const secrets = await Promise.all(versions.map((version) => ports.webhookSecret(job.accountId, version)));
  if (secrets.length === 1) {
    const previous = await ports.previousWebhookSecret?.(job.accountId, versions[0]);
    if (previous !== undefined) secrets.push(previous);
  }
  const [signature, previousSignature] = await Promise.all(secrets.map((secret) => signWebhook(secret, content)));
  const headers: Record<string, string> = {
    'Content-Type': 'application/json',
    'User-Agent': 'rollcall',
    'X-Request-Timestamp': String(timestampSeconds),
    'X-Signature': signature,
  };
  if (previousSignature !== undefined) headers['X-Signature-Previous'] = previousSignature;
  if (message.attempt > 0) {
    headers['x-retry-num'] = String(message.attempt);
    headers['x-retry-reason'] = message.reason ?? 'unknown_error';
  }
  return ports.webhook.post(job.webhookUrl, body, headers);
}

/** Whether the output has expired, also one that is only an error. */
function isExpired(ports: DeliveryPorts, job: JobRecord): boolean {
  return (job.completedAt ?? 0) + ports.outputTtlMs <= ports.now();
}

/** Size of the output to send in the body; 0 if there is none. */
async function outputBytesOf(ports: DeliveryPorts, job: JobRecord): Promise<number> {
  if (job.webhookStatusOnly || job.error || isExpired(ports, job) || job.outputKey === undefined) return 0;
  return (await ports.objects.sizeBytes(job.outputKey)) ?? 0;
}

async function bodyParts(ports: DeliveryPorts, job: JobRecord, outputBytes: number): Promise<Uint8Array[]> {
  const encoder = new TextEncoder();
  if (job.webhookStatusOnly) return [encoder.encode(JSON.stringify({ jobId: job.id, status: job.status }))];
  const head = {
    jobId: job.id,
    status: job.status,
    createdAt: new Date(job.createdAt).toISOString(),
    updatedAt: new Date(job.updatedAt).toISOString(),
    ...(job.request.metadata && { metadata: job.request.metadata }),
  };
  if (job.error && !isExpired(ports, job)) {
    return [encoder.encode(JSON.stringify({ ...head, output: { error: job.error.message, code: job.error.code } }))];
  }
  if (outputBytes > MAX_OUTPUT_BYTES) {
    ports.log('warn', 'webhook_output_left_out', { jobId: job.id, bytes: outputBytes });
  }
  const isSent = outputBytes > 0 && outputBytes <= MAX_OUTPUT_BYTES;
  const output = isSent && job.outputKey ? await ports.objects.get(job.outputKey) : undefined;
  if (!output) return [encoder.encode(JSON.stringify(head))];
  return [encoder.encode(`${JSON.stringify(head).slice(0, -1)},"output":`), output, encoder.encode('}')];
}
