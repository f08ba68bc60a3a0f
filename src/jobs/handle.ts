import { assembleJob } from './assemble.ts';
import { deliverWebhook } from './deliver-webhook.ts';
import { LEASE_MS } from './dispatch.ts';
import { failJob } from './fail.ts';
import { JobGone, keepLease } from './lease.ts';
import type { Message } from './messages.ts';
import { outboxId } from './messages.ts';
import type { Mutex } from './mutex.ts';
import { hasPlan, planAnew, planJob, RetryStep } from './plan.ts';
import type { JobPorts } from './ports.ts';
import { runShard } from './run-shard.ts';

/** What the queue does with a handled message. */
export type Verdict = { readonly kind: 'done' } | { readonly kind: 'retry'; readonly delaySeconds: number };

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
    if (message.step !== 'plan' && job.status === 'running' && !(await hasPlan(ports, job.id))) {
      await keepLease(ports, job.id, outboxId(message), () => planAnew(ports, job, attempt));
      return DONE;
    }
    switch (message.step) {
      case 'plan':
        await keepLease(ports, job.id, outboxId(message), () => planJob(ports, job, attempt));
        break;
      case 'shard':
        await runShard(ports, mutex, job, message.shard);
        break;
      case 'assemble':
        await assembleJob(ports, mutex, job);
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
  if (source?.permanent) {
    await failJob(ports, jobId, { code: `source_${source.kind}`, message: source.message });
    return DONE;
  }
  ports.log('error', 'step_failed', {
    jobId,
    step: message.step,
    attempt,
    error: error instanceof Error ? `${error.name}: ${error.message}` : String(error),
    stack: error instanceof Error ? error.stack : undefined,
  });
  return { kind: 'retry', delaySeconds: Math.min(30, 2 ** attempt) };
}

/** Read faults carry the source's own tagged error; a source that changed will not change back. */
function sourceFault(error: unknown): { kind: string; message: string; permanent: boolean } | undefined {
  if (!(error instanceof Error) || error.name !== 'SourceReadError') return undefined;
  const { kind, message } = (error as Error & { error: { kind: string; message: string } }).error;
  return { kind, message, permanent: kind === 'changed' || kind === 'http_status' || kind === 'empty' };
}

/** A message that the queue gave up on: its job fails with a reason instead of waiting for ever. */
export async function handleDeadLetter(ports: JobPorts, message: Message): Promise<void> {
  ports.log('error', 'dead_letter', { jobId: message.jobId, step: message.step });
  if (message.step === 'webhook') {
    await ports.store.settle(outboxId(message));
    return;
  }
  await failJob(ports, message.jobId, {
    code: 'internal',
    message: `The service could not ${STEP_NAMES[message.step]} this recording after several tries.`,
  });
}

const STEP_NAMES = { plan: 'read', shard: 'analyse', assemble: 'assemble the result of' } as const;
