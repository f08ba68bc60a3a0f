import { BATCH_MESSAGES, dispatchAll } from './dispatch.ts';
import { failJob } from './fail.ts';
import type { OutboxMessage } from './messages.ts';
import type { ControlPorts, OutboxPosition } from './ports.ts';
import { MAX_JOB_MS } from './retry.ts';

const RESEND_BATCHES = 20;

/**
 * Sends again what was sent and never heard of: local queues live in memory and die with the process, and a consumer
 * may die in mid-step. The messages' handlers may run twice, so an early resend costs time and nothing else.
 *
 * @param before leases that ended before this moment count as lost; Infinity after a restart, when every lease is, and
 *   all of them are sent, those of shards too
 * @returns how many messages were sent
 */
export async function resendLost(ports: ControlPorts, before: number): Promise<number> {
  let sent = 0;
  const seen = new Set<string>();
  const isRestart = before === Number.POSITIVE_INFINITY;
  let after: OutboxPosition | undefined;
  for (let batch = 0; batch < RESEND_BATCHES || isRestart; batch++) {
    const { rows, next } = await ports.store.overdue(before, BATCH_MESSAGES, { after });
    // What was just sent has a new lease, and where all are asked for it comes once more.
    const lost = rows.filter(({ id }) => !seen.has(id));
    for (const { id } of lost) seen.add(id);
    await dispatchAll(
      ports,
      lost.map(({ message, dueAt }) => ({
        message,
        delaySeconds: Math.ceil(Math.max(0, dueAt - ports.now()) / 1000),
      })),
    );
    if (isRestart) for (const { message } of lost) await resendShards(ports, message);
    sent += lost.length;
    if (!next) break;
    after = next;
  }
  if (sent > 0) ports.log('warn', 'messages_resent', { sent });
  return sent;
}

async function resendShards(ports: ControlPorts, { step, jobId }: OutboxMessage): Promise<void> {
  if (step !== 'ingest' && step !== 'analyse') return;
  await ports.progress.resend(jobId).catch((error: unknown) => {
    ports.log('warn', 'shards_not_resent', { jobId, error: String(error) });
  });
}

const FAILED_PER_SWEEP = 100;

/** Fails jobs that have been running for a day, whatever has kept them from their end. */
export async function failOverdue(ports: ControlPorts): Promise<void> {
  for (const jobId of await ports.store.runningSince(ports.now() - MAX_JOB_MS, FAILED_PER_SWEEP))
    await failJob(ports, jobId, {
      code: 'internal',
      message: 'The service could not finish this job within 24 hours.',
    });
}
