import { type OutboxMessage, outboxId } from './job-messages.ts';
import type { JobPorts, StepPorts } from './job-ports.ts';
import type { JobOutbox, JobSteps } from './job-store.ts';

/** Time without a renewal after which a running step counts as lost. It renews its lease well before that. */
export const LEASE_MS = 60_000;
/** Time in its queue after which a message counts as lost; long, because queues may have a backlog. */
export const QUEUE_LEASE_MS = 15 * 60_000;

/** Ports to send messages. */
export type DispatchPorts = StepPorts<'queue' | 'now' | 'log', Pick<JobOutbox, 'renewLease' | 'renewLeases'>>;

/**
 * Sends a message whose outbox row exists. Failures of the queue or database are only logged: the row stays, and the
 * sweep sends the message again.
 */
export async function dispatch(ports: DispatchPorts, message: OutboxMessage, delaySeconds = 0): Promise<void> {
  const id = outboxId(message);
  const dueAt = ports.now() + delaySeconds * 1000;
  await sendLeased(ports, {
    about: { outboxId: id },
    renew: (leaseMs) => ports.store.renewLease(id, dueAt + leaseMs),
    send: () => ports.queue.send(message, delaySeconds),
  });
}

/** As `dispatch`, for a message whose row has the lease of a waiting message already. */
export async function sendAgain(ports: DispatchPorts, message: OutboxMessage, delaySeconds = 0): Promise<void> {
  const id = outboxId(message);
  await sendLeased(ports, {
    about: { outboxId: id },
    renew: async (leaseMs) => {
      if (leaseMs === 0) await ports.store.renewLease(id, ports.now() + delaySeconds * 1000);
    },
    send: () => ports.queue.send(message, delaySeconds),
  });
}

/** Maximum number of messages that a queue accepts in one call. */
export const BATCH_MESSAGES = 100;

/** `dispatch` in batches: an outage leaves more messages than the 1,000 statements that an invocation may run. */
export async function dispatchAll(
  ports: DispatchPorts,
  queued: readonly { readonly message: OutboxMessage; readonly delaySeconds: number }[],
): Promise<void> {
  for (let from = 0; from < queued.length; from += BATCH_MESSAGES) {
    const batch = queued.slice(from, from + BATCH_MESSAGES);
    const now = ports.now();
    const due = batch.map(({ message, delaySeconds }) => ({ id: outboxId(message), at: now + delaySeconds * 1000 }));
    await sendLeased(ports, {
      about: { messages: batch.length },
      renew: (leaseMs) => ports.store.renewLeases(due.map(({ id, at }) => ({ id, leaseUntil: at + leaseMs }))),
      send: () => ports.queue.sendAll(batch),
    });
  }
}

interface Sending {
  /** For the log. */
  readonly about: Readonly<Record<string, unknown>>;
  /** @param leaseMs length of the lease from the time at which the messages are due */
  readonly renew: (leaseMs: number) => Promise<void>;
  readonly send: () => Promise<void>;
}

/** Sets the lease before the send: later it could overwrite the lease of a handler that has begun. */
async function sendLeased({ log }: Pick<JobPorts, 'log'>, { about, renew, send }: Sending): Promise<void> {
  const lease = (leaseMs: number) =>
    renew(leaseMs).catch((error: unknown) => log('warn', 'lease_not_renewed', { ...about, error: String(error) }));
  await lease(QUEUE_LEASE_MS);
  try {
    await send();
  } catch (error) {
    log('warn', 'send_failed', { ...about, error: String(error) });
    await lease(0);
  }
}

const RENEW_AFTER_MS = 10_000;

/** Thrown into a step whose job was canceled, deleted or failed meanwhile; nothing is left to do. */
export class JobGone extends Error {
  constructor(jobId: string) {
    super(`job ${jobId} no longer runs`);
    this.name = 'JobGone';
  }
}

/**
 * A pause that also renews the step's lease, and ends the step when its job has ended.
 *
 * @param renew resolves to false when the job has ended. A renewal that fails is tried again ten seconds later: the
 *   step's work so far must not be lost
 * @returns a function to call between units of work of at most a few hundred milliseconds
 * @throws JobGone from that function
 */
export function createPulse(
  ports: Pick<JobPorts, 'pause' | 'now' | 'log'>,
  jobId: string,
  renew: () => Promise<boolean>,
): () => Promise<void> {
  let renewedAt = ports.now();
  return async () => {
    await ports.pause();
    const now = ports.now();
    if (now - renewedAt < RENEW_AFTER_MS) return;
    renewedAt = now;
    const isWanted = await renew().catch((error: unknown) => {
      ports.log('warn', 'lease_not_renewed', { jobId, error: String(error) });
      return true;
    });
    if (!isWanted) throw new JobGone(jobId);
  };
}

/**
 * Keeps a message's lease alive while `work` mostly waits for the network.
 *
 * @param work gets a signal that is aborted when its result is no longer needed
 * @throws JobGone within ten seconds of the job's end, without waiting for `work`
 */
export async function keepLease<T>(
  ports: StepPorts<'now' | 'log', Pick<JobSteps, 'keep'>>,
  jobId: string,
  outboxRowId: string,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  let timer: ReturnType<typeof setInterval> | null = null;
  const controller = new AbortController();
  const gone = new Promise<never>((_done, giveUp) => {
    const renew = async () => {
      if (!(await ports.store.keep(jobId, outboxRowId, ports.now() + LEASE_MS))) giveUp(new JobGone(jobId));
    };
    timer = setInterval(() => {
      renew().catch((error) => {
        ports.log('warn', 'lease_not_renewed', { outboxId: outboxRowId, error: String(error) });
      });
    }, RENEW_AFTER_MS);
  });
  try {
    return await Promise.race([work(controller.signal), gone]);
  } finally {
    controller.abort();
    clearInterval(timer);
  }
}
