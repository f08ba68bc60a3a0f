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

/** Of each instance, whose name is in front. */
const DEAD_LETTER_QUEUE = /-dead$/;
/** Cron text with which the local service starts: its queues live in memory, so whatever was sent before is lost. */
const BOOT_CRON = '@boot';

/** Before a message is delivered again that could not even be given back in order. */
const FAILED_PAUSE_SECONDS = 10;

const mutex = new Mutex();

export default {
  async queue(batch, env) {
    const ports = jobPorts(env);
    // A message that fails even at its own failure must not end its neighbours'.
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
    // Apart from each other: a failure to send must be logged too.
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
    // Its row in the outbox, or its lease in the job's object, has it sent again.
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
