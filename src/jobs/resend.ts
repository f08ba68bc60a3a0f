import { beginShards } from './assemble.ts';
import { BATCH_MESSAGES, dispatchAll, MAX_STARTS } from './dispatch.ts';
import { failJob } from './fail.ts';
import { requestIngest } from './ingest.ts';
import { findIngest } from './ingest-state.ts';
import type { JobPorts, JobRecord, OutboxPosition, Queued } from './ports.ts';
import { finishWithoutTranscript } from './transcribe.ts';

const RESEND_BATCHES = 20;

/**
 * Continues with a job that runs without any message, as after a crash at the worst moment: begins all its parts again,
 * or the reading of its recording.
 *
 * @returns whether it was so
 */
export async function reviveStranded(ports: JobPorts, { id }: JobRecord): Promise<boolean> {
  if (!(await ports.store.isStranded(id))) return false;
  ports.log('error', 'job_stranded', { jobId: id });
  const recording = (await findIngest(ports, id))?.state.recording;
  if (recording) await beginShards(ports, id, recording);
  else await requestIngest(ports, id);
  return true;
}

/**
 * Sends again what was sent and never heard of: local queues live in memory and die with the process, and a consumer
 * may die in mid-step. The messages' handlers may run twice, so an early resend costs time and nothing else.
 *
 * @param before leases that ended before this moment count as lost; Infinity after a restart, when every lease is, and
 *   all of them are sent
 * @returns how many messages were sent
 */
export async function resendLost(ports: JobPorts, before: number, jobId?: string): Promise<number> {
  let sent = 0;
  const seen = new Set<string>();
  const batches = before === Number.POSITIVE_INFINITY ? before : RESEND_BATCHES;
  let after: OutboxPosition | undefined;
  for (let batch = 0; batch < batches; batch++) {
    const { rows, next } = await ports.store.overdue(before, BATCH_MESSAGES, { jobId, after });
    const lost: Queued[] = [];
    for (const row of rows) {
      // What was just sent has a new lease, and where all are asked for it comes once more.
      if (seen.has(row.id)) continue;
      seen.add(row.id);
      if (row.starts >= MAX_STARTS && row.message.step === 'webhook') {
        ports.log('error', 'webhook_given_up', { jobId: row.message.jobId, attempt: row.message.attempt });
        await ports.store.settle(row.id);
        continue;
      }
      const { message } = row;
      const job = row.starts >= MAX_STARTS && message.step === 'transcribe' && (await ports.store.find(message.jobId));
      if (job && (await finishWithoutTranscript(ports, job))) continue;
      if (row.starts >= MAX_STARTS) {
        await failJob(ports, row.message.jobId, {
          code: 'internal',
          message: 'The service could not finish this job after many tries.',
        });
        continue;
      }
      const delayMs = Math.max(0, row.dueAt - ports.now());
      lost.push({ message: row.message, delaySeconds: Math.ceil(delayMs / 1000) });
    }
    await dispatchAll(ports, lost);
    sent += lost.length;
    if (!next) break;
    after = next;
  }
  if (sent > 0) ports.log('warn', 'messages_resent', { sent, jobId });
  return sent;
}
