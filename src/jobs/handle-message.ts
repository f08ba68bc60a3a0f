import { assembleJob, assembleRecount, beginRecount, isRecount } from './assemble-job.ts';
import { deliverWebhook } from './deliver-webhook.ts';
import { createPulse, JobGone, keepLease, LEASE_MS, QUEUE_LEASE_MS } from './dispatch.ts';
import { failJob } from './end-job.ts';
import { judge, MAX_STARTS, markPlatformFaults } from './faults.ts';
import { ingestJob, requestIngest } from './ingest.ts';
import { findIngest } from './ingest-state.ts';
import { type BegunStep, isUrgent, type Message, type OutboxMessage, outboxId } from './job-messages.ts';
import type { JobPorts } from './job-ports.ts';
import { isTerminal, type JobRecord } from './job-record.ts';
import type { StepStart } from './job-store.ts';
import type { Mutex } from './mutex.ts';
import { beginShard, handOutAgain } from './shards.ts';
import { finishWithoutTranscript, transcribeJob } from './transcribe.ts';

/** What the queue should do with a handled message. */
export type Verdict = { readonly kind: 'done' } | { readonly kind: 'retry'; readonly delaySeconds: number };

const DONE: Verdict = { kind: 'done' };

/** Thrown for a step whose last run crashed and whose pause is not over. */
class StepNotDue extends Error {
  constructor(readonly delaySeconds: number) {
    super('the step is not due yet');
  }
}

/**
 * Runs one step. Steps may run twice and in any order; a step whose job has ended does nothing.
 *
 * @param attempt 1 for the queue's first delivery
 */
export async function handleMessage(
  platformPorts: JobPorts,
  mutex: Mutex,
  message: Message,
  attempt: number,
): Promise<Verdict> {
  const ports = markPlatformFaults(platformPorts);
  let begun: BegunStep | undefined;
  const deliveredAt = ports.now();
  const handle = async (beat: () => void): Promise<void> => {
    const turnWaitMs = ports.now() - deliveredAt;
    begun = message.step === 'shard' ? await beginShard(ports, message, turnWaitMs) : await beginStep(ports, message);
    if (!begun) return;
    const { renew } = begun;
    if (begun.starts > MAX_STARTS) return giveUp(ports, message);
    const pulse = createPulse(ports, message.jobId, renew);
    await begun.run(async () => {
      beat();
      await pulse();
    });
  };
  try {
    if (message.step !== 'shard' && message.step !== 'assemble') await handle(() => undefined);
    // Begin the step once it has its turn, so that waiting does not count as a start.
    else {
      const whileWaiting = waitingPulse(ports, message);
      await mutex.run({ isUrgent: isUrgent(message), sleep: ports.sleep, whileWaiting }, handle);
    }
  } catch (error) {
    if (error instanceof StepNotDue) return { kind: 'retry', delaySeconds: error.delaySeconds };
    return onError(ports, message, begun, attempt, error);
  }
  if (begun && message.step === 'shard' && isUrgent(message)) {
    // The message of the assembly is behind the shards of all other short jobs. If the assembly fails here, that message
    // or the next sweep repeats it.
    await handleMessage(platformPorts, mutex, { step: 'assemble', jobId: message.jobId }, 1);
  }
  return DONE;
}

/** Renews the lease of a step that waits for its turn; undefined for shards, whose lease is long enough. */
function waitingPulse(ports: JobPorts, message: Message): (() => Promise<void>) | undefined {
  if (message.step === 'shard') return undefined;
  const id = outboxId(message);
  return createPulse(ports, message.jobId, () => ports.store.keep(message.jobId, id, ports.now() + LEASE_MS));
}

/** Begins a step that has a row in the outbox. @returns undefined for a message without one */
async function beginStep(ports: JobPorts, message: OutboxMessage): Promise<BegunStep | undefined> {
  const id = outboxId(message);
  const leaseMs = message.step === 'webhook' ? QUEUE_LEASE_MS : LEASE_MS;
  const start = await ports.store.begin(message, ports.now() + leaseMs, ports.now());
  if (!start) {
    // The ingest may have crashed before it called the job's object, which hands out the shards.
    if (message.step === 'ingest') await analyse(ports, message.jobId);
    return undefined;
  }
  if (start.pauseSeconds !== undefined) throw new StepNotDue(start.pauseSeconds);
  return {
    starts: start.starts,
    renew: () => ports.store.keep(message.jobId, id, ports.now() + LEASE_MS),
    putBack: (dueAt, isForgiven) => ports.store.putBack(id, dueAt, isForgiven),
    run: (pulse) => runStep(ports, message, start, pulse),
  };
}

async function runStep(
  ports: JobPorts,
  message: OutboxMessage,
  { starts, job }: StepStart,
  pulse: () => Promise<void>,
): Promise<void> {
  const id = outboxId(message);
  if (message.step === 'webhook') return deliverWebhook(ports, message, job);
  if (!job || isTerminal(job.status)) return ports.store.settle(id);
  switch (message.step) {
    case 'ingest':
      if (isRecount(job)) return beginRecount(ports, job);
      return keepLease(ports, job.id, id, (signal) => ingestJob(ports, job, starts, signal));
    case 'analyse':
      await analyse(ports, job.id);
      return ports.store.handOver(id, ports.now() + QUEUE_LEASE_MS);
    case 'assemble':
      if (isRecount(job)) return assembleRecount(ports, job, pulse);
      return (await hasWork(ports, job)) ? assembleJob(ports, job, pulse) : requestIngest(ports, job.id);
    case 'transcribe':
      if (!(await hasWork(ports, job))) return requestIngest(ports, job.id);
      return keepLease(ports, job.id, id, (signal) => transcribeJob(ports, job, signal));
  }
}

/** Whether this version has read the recording. */
const hasWork = async (ports: JobPorts, { id }: JobRecord): Promise<boolean> =>
  (await findIngest(ports, id)) !== undefined;

/** Makes the job's object hand out its shards, including lost ones. */
async function analyse(ports: JobPorts, jobId: string): Promise<void> {
  const state = (await findIngest(ports, jobId))?.state;
  if (state) await handOutAgain(ports, jobId, state);
  else await requestIngest(ports, jobId);
}

async function onError(
  ports: JobPorts,
  message: Message,
  begun: BegunStep | undefined,
  attempt: number,
  error: unknown,
): Promise<Verdict> {
  const { jobId, step } = message;
  // The row was deleted with the job.
  if (error instanceof JobGone) return DONE;
  const judgement = judge(error, begun?.starts ?? 1, attempt);
  switch (judgement.kind) {
    case 'source_failed': {
      const { kind, message: reason } = judgement.error;
      await failJob(ports, jobId, { code: `source_${kind}`, message: reason });
      return DONE;
    }
    case 'given_up':
      logFault(ports, 'step_failed', message, attempt, error);
      await giveUp(ports, message);
      return DONE;
    case 'again': {
      const { event, delaySeconds, isForgiven } = judgement;
      if (event !== 'step_retried') logFault(ports, event, message, attempt, error);
      // The lease covers the pause. If this write fails, the lease runs out and the message is sent again.
      await begun?.putBack(ports.now() + delaySeconds * 1000, isForgiven).catch((fault: unknown) => {
        ports.log('warn', 'step_not_put_back', { jobId, step, error: String(fault) });
      });
      return { kind: 'retry', delaySeconds };
    }
  }
}

function logFault(ports: JobPorts, event: string, { jobId, step }: Message, attempt: number, error: unknown): void {
  ports.log(event === 'step_failed' ? 'error' : 'warn', event, {
    jobId,
    step,
    attempt,
    error: error instanceof Error ? `${error.name}: ${error.message}` : String(error),
    ...(event === 'step_failed' && error instanceof Error && { stack: error.stack }),
  });
}

/** Fails the job of a step that failed or crashed too often. */
async function giveUp(ports: JobPorts, message: Message): Promise<void> {
  const { jobId, step } = message;
  ports.log('error', 'given_up', { jobId, step });
  if (step === 'webhook') return ports.store.settle(outboxId(message));
  const job = step === 'transcribe' ? await ports.store.find(jobId) : undefined;
  if (job && (await finishWithoutTranscript(ports, job))) return;
  await failJob(ports, jobId, {
    code: 'internal',
    message: `The service could not ${STEP_NAMES[step]} this recording after several tries.`,
  });
}

const STEP_NAMES = {
  ingest: 'read',
  analyse: 'analyse',
  shard: 'analyse',
  assemble: 'assemble the result of',
  transcribe: 'transcribe',
} as const;
