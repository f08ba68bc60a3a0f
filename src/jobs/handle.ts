import { assembleJob } from './assemble.ts';
import { deliverWebhook, isAttempt } from './deliver-webhook.ts';
import { LEASE_MS, QUEUE_LEASE_MS } from './dispatch.ts';
import { failJob } from './fail.ts';
import { ingestJob, RetryStep, requestIngest } from './ingest.ts';
import { findIngest } from './ingest-state.ts';
import { JobGone, keepLease } from './lease.ts';
import type { Message } from './messages.ts';
import { outboxId } from './messages.ts';
import { type Mutex, TurnLost } from './mutex.ts';
import type { JobPorts } from './ports.ts';
import { runShard } from './run-shard.ts';
import { type SourceErrorKind, SourceReadError } from './source-error.ts';
import { finishWithoutTranscript, transcribeJob } from './transcribe.ts';

/** What the queue does with a handled message. */
export type Verdict = { readonly kind: 'done' } | { readonly kind: 'retry'; readonly delaySeconds: number };

/** So often the queue delivers a message before it gives up on it: once, and `max_retries` in wrangler.jobs.toml. */
export const MAX_DELIVERIES = 5;
/** Pause before a step is tried again whose source fails, doubled each time: four minutes of pauses in all. */
const SOURCE_PAUSE_SECONDS = 15;
/**
 * The same where the service itself fails, quadrupled each time: two seconds for a hiccup, nearly three minutes in all
 * for storage that is away.
 */
const OWN_PAUSE_SECONDS = 2;
/** Who lost the turn in an isolate leaves it to others for so long. */
const TURN_PAUSE_SECONDS = 30;

const DONE: Verdict = { kind: 'done' };

/**
 * Runs one step. Steps may run twice and in any order; a step whose job has ended does nothing.
 *
 * @param attempt 1 for the queue's first delivery
 */
export async function handleMessage(
  ports: JobPorts,
  mutex: Mutex,
  message: Message,
  attempt: number,
): Promise<Verdict> {
  try {
    if (message.step === 'webhook') {
      await deliverWebhook(ports, message);
      return DONE;
    }
    await ports.store.recordStart(outboxId(message), ports.now() + LEASE_MS);
    const job = await ports.store.find(message.jobId);
    if (!job) {
      await ports.store.settle(outboxId(message));
      return DONE;
    }
    if (message.step !== 'ingest' && job.status === 'running' && !(await findIngest(ports, job.id))) {
      // It goes with the job's end, which may just have come.
      if ((await ports.store.find(job.id))?.status !== 'running') throw new JobGone(job.id);
      await requestIngest(ports, job.id);
      return DONE;
    }
    switch (message.step) {
      case 'ingest':
        await keepLease(ports, job.id, outboxId(message), (signal) => ingestJob(ports, job, attempt, signal));
        break;
      case 'shard':
        await runShard(ports, mutex, job, message.shard);
        break;
      case 'assemble':
        await assembleJob(ports, mutex, job);
        break;
      case 'transcribe':
        await keepLease(ports, job.id, outboxId(message), (signal) => transcribeJob(ports, job, signal));
        break;
    }
    return DONE;
  } catch (error) {
    return onError(ports, message, attempt, error);
  }
}

async function onError(ports: JobPorts, message: Message, attempt: number, error: unknown): Promise<Verdict> {
  const { jobId } = message;
  if (error instanceof JobGone) {
    await ports.store.settle(outboxId(message));
    return DONE;
  }
  if (error instanceof RetryStep) return { kind: 'retry', delaySeconds: error.delaySeconds };
  const source = sourceFault(error);
  if (source) {
    if (source.permanent || attempt >= MAX_DELIVERIES) {
      await failJob(ports, jobId, { code: `source_${source.kind}`, message: source.message });
      return DONE;
    }
    ports.log('warn', 'source_failed', {
      jobId,
      step: message.step,
      attempt,
      kind: source.kind,
      error: source.message,
    });
    return retryIn(ports, message, SOURCE_PAUSE_SECONDS * 2 ** (attempt - 1));
  }
  if (error instanceof TurnLost) {
    ports.log('warn', 'turn_lost', { jobId, step: message.step, attempt });
    return retryIn(ports, message, TURN_PAUSE_SECONDS);
  }
  ports.log('error', 'step_failed', {
    jobId,
    step: message.step,
    attempt,
    error: error instanceof Error ? `${error.name}: ${error.message}` : String(error),
    stack: error instanceof Error ? error.stack : undefined,
  });
  const delaySeconds = OWN_PAUSE_SECONDS * 4 ** (Math.min(attempt, MAX_DELIVERIES) - 1);
  // What failed may be the database.
  return retryIn(ports, message, delaySeconds).catch(() => ({ kind: 'retry', delaySeconds }));
}

/** A pause that is longer than a step's lease must not have the message sent a second time. */
async function retryIn(ports: JobPorts, message: Message, delaySeconds: number): Promise<Verdict> {
  await ports.store.renewLease(outboxId(message), ports.now() + delaySeconds * 1000 + QUEUE_LEASE_MS);
  return { kind: 'retry', delaySeconds };
}

/**
 * What no other try will mend: a source that changed will not change back, one that is shorter than stated will not
 * grow, and an address that is refused stays so.
 */
const PERMANENT: ReadonlySet<SourceErrorKind> = new Set([
  'changed',
  'incomplete',
  'too_slow',
  'http_status',
  'empty',
  'private_address',
  'invalid_url',
  'too_many_redirects',
  'web_page',
]);

/** Read faults carry the source's own tagged error. */
function sourceFault(error: unknown): { kind: SourceErrorKind; message: string; permanent: boolean } | undefined {
  if (!(error instanceof SourceReadError)) return undefined;
  const { kind, message } = error.error;
  return { kind, message, permanent: PERMANENT.has(kind) };
}

/**
 * A message that the queue gave up on: its job fails with a reason instead of waiting forever. Deliveries that met a
 * database that was away never began their step and count for nothing: such a message is sent again. A webhook is sent
 * again until it was begun too often (`resend.ts`).
 */
export async function handleDeadLetter(ports: JobPorts, message: Message): Promise<void> {
  const id = outboxId(message);
  const row = await ports.store.outboxRow(id);
  ports.log('error', 'dead_letter', { jobId: message.jobId, step: message.step, starts: row?.starts });
  // Settled by another copy, or a later attempt of the webhook has taken the place of this one.
  if (!row || !isAttempt(row.message, message)) return;
  if (message.step === 'webhook' || row.starts < MAX_DELIVERIES) {
    // Soon, and not beside another copy that is in work.
    await ports.store.renewLease(id, Math.max(row.dueAt, Math.min(row.leaseUntil, ports.now() + LEASE_MS)));
    return;
  }
  const job = message.step === 'transcribe' ? await ports.store.find(message.jobId) : undefined;
  if (job && (await finishWithoutTranscript(ports, job))) return;
  await failJob(ports, message.jobId, {
    code: 'internal',
    message: `The service could not ${STEP_NAMES[message.step]} this recording after several tries.`,
  });
}

const STEP_NAMES = {
  ingest: 'read',
  shard: 'analyse',
  assemble: 'assemble the result of',
  transcribe: 'transcribe',
} as const;
