import type { Message } from './messages.ts';
import { outboxId } from './messages.ts';
import type { JobPorts, Queued } from './ports.ts';

/** How long a step in work may stay silent before it counts as lost. It renews its lease well before that. */
export const LEASE_MS = 60_000;
/** How long a message may wait in its queue before it counts as lost: behind a backlog, waiting is no fault. */
export const QUEUE_LEASE_MS = 15 * 60_000;
/** A step begun this often without an end takes its isolate down with it every time: the job fails instead. */
export const MAX_STARTS = 20;

/**
 * Sends a message whose outbox row exists already. A failing queue or database is no error here: the row stays, and the sweep or the job's
 * alarm sends it again.
 */
export async function dispatch(
  ports: Pick<JobPorts, 'store' | 'queue' | 'now' | 'log'>,
  message: Message,
  delaySeconds = 0,
): Promise<void> {
  const id = outboxId(message);
  const now = ports.now();
  const lease = (leaseMs: number) =>
    ports.store.renewLease(id, now + delaySeconds * 1000 + leaseMs).catch((error: unknown) => {
      ports.log('warn', 'lease_not_renewed', { outboxId: id, error: String(error) });
    });
  // The lease comes first: set after the send, it could overwrite that of a handler which has begun already.
  await lease(QUEUE_LEASE_MS);
  try {
    await ports.queue.send(message, delaySeconds);
  } catch (error) {
    ports.log('warn', 'send_failed', { outboxId: id, error: String(error) });
    await lease(0);
  }
}

/** Messages that a queue takes at once. */
export const BATCH_MESSAGES = 100;

/** As `dispatch`, many with few requests: an invocation may make a thousand statements, and a day of audio or an outage has more messages. */
export async function dispatchAll(
  ports: Pick<JobPorts, 'store' | 'queue' | 'now' | 'log'>,
  queued: readonly Queued[],
): Promise<void> {
  for (let from = 0; from < queued.length; from += BATCH_MESSAGES) {
    const batch = queued.slice(from, from + BATCH_MESSAGES);
    const now = ports.now();
    const lease = (leaseMs: number) =>
      ports.store
        .renewLeases(
          batch.map(({ message, delaySeconds }) => ({
            id: outboxId(message),
            leaseUntil: now + delaySeconds * 1000 + leaseMs,
          })),
        )
        .catch((error: unknown) => {
          ports.log('warn', 'leases_not_renewed', { messages: batch.length, error: String(error) });
        });
    await lease(QUEUE_LEASE_MS);
    try {
      await ports.queue.sendAll(batch);
    } catch (error) {
      ports.log('warn', 'send_failed', { messages: batch.length, error: String(error) });
      await lease(0);
    }
  }
}
