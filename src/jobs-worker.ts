import type { JobsEnv } from './env.ts';
import { admitAll } from './jobs/end-job.ts';
import { handleMessage, type Verdict } from './jobs/handle-message.ts';
import { messageSchema } from './jobs/job-messages.ts';
import type { JobPorts } from './jobs/job-ports.ts';
import { Mutex } from './jobs/mutex.ts';
import { failOverdue, resendLost } from './jobs/sweeps.ts';
import { log } from './platform/log.ts';
import { jobPorts, logBacklog } from './services-jobs.ts';

export { JobProgress } from '../durable-objects/job-progress.ts';
export { SourceCopy } from '../durable-objects/source-copy.ts';

/** Ending of the names of dead letter queues; each instance has its own prefix. */
const DEAD_LETTER_QUEUE = /-dead$/;
/** Cron text of the first sweep of the local service. Its queues live in memory, so all earlier messages are lost. */
const BOOT_CRON = '@boot';

/** Pause before the next delivery of a message whose handler threw. */
const FAILED_PAUSE_SECONDS = 10;

const mutex = new Mutex();

export default {
  async queue(batch, env) {
    const ports = jobPorts(env);
    // A handler that throws must not affect the other messages of the batch.
    const handled = batch.messages.map(async (delivery) => {
      try {
        await handleDelivery(ports, batch.queue, delivery);
      } catch (error) {
        log('error', 'delivery_failed', { queue: batch.queue, error: String(error) });
        delivery.retry({ delaySeconds: FAILED_PAUSE_SECONDS });
      }
    });
    await Promise.all(handled);
  },

  async scheduled(controller, env) {
    const ports = jobPorts(env);
    const before = controller.cron === BOOT_CRON ? Number.POSITIVE_INFINITY : ports.now();
    // All of them run even if one fails, and each failure is logged.
    const swept = await Promise.allSettled([
      resendLost(ports, before),
      failOverdue(ports),
      admitAll(ports),
      logBacklog(env),
    ]);
    const faults = swept.filter((result) => result.status === 'rejected').map(({ reason }) => reason);
    for (const fault of faults) log('error', 'sweep_failed', { error: String(fault) });
    if (faults.length > 0) throw faults[0];
  },
} satisfies ExportedHandler<JobsEnv>;

async function handleDelivery(ports: JobPorts, queue: string, delivery: Message<unknown>): Promise<void> {
  const parsed = messageSchema.safeParse(delivery.body);
  if (!parsed.success) {
    log('error', 'unreadable_message', { queue });
    delivery.ack();
    return;
  }
  if (DEAD_LETTER_QUEUE.test(queue)) {
    // The sweep, or the job's object for a shard, sends it again.
    const { jobId, step } = parsed.data;
    log('error', 'dead_letter', { jobId, step });
    delivery.ack();
    return;
  }
  apply(delivery, await handleMessage(ports, mutex, parsed.data, delivery.attempts));
}

function apply(delivery: Message<unknown>, verdict: Verdict): void {
  if (verdict.kind === 'done') delivery.ack();
  else delivery.retry({ delaySeconds: verdict.delaySeconds });
}
