import { type QueueName, queueOf } from '../jobs/job-messages.ts';
import type { QueuePort } from '../jobs/job-ports.ts';
import { fnv1a } from './fnv1a.ts';

/** The queues of a kind: a job's messages of that kind go through one of them. */
export type QueueSet = readonly Queue<unknown>[];

/**
 * Sends each message to a queue of its kind. A kind may have several queues, because one takes at most 5,000 messages a
 * second and has at most 250 consumers; the job's id decides.
 */
export function createQueues(queues: Record<QueueName, QueueSet>): QueuePort {
  const queueFor = (name: QueueName, jobId: string) => queues[name][fnv1a(jobId) % queues[name].length];
  return {
    async send(message, delaySeconds) {
      await queueFor(queueOf(message), message.jobId).send(message, { contentType: 'json', delaySeconds });
    },

    async sendAll(messages) {
      const byQueue = new Map<Queue<unknown>, MessageSendRequest<unknown>[]>();
      for (const { message, delaySeconds } of messages) {
        const queue = queueFor(queueOf(message), message.jobId);
        byQueue.set(queue, [...(byQueue.get(queue) ?? []), { body: message, contentType: 'json', delaySeconds }]);
      }
      for (const [queue, requests] of byQueue) await queue.sendBatch(requests);
    },
  };
}

/** The queues bound as `JOBS`, `JOBS_2`, `JOBS_3` … */
export function queueSet(env: object, binding: string): QueueSet {
  const bindings = env as Readonly<Record<string, Queue<unknown> | undefined>>;
  const queues: Queue<unknown>[] = [];
  for (let queue = bindings[binding]; queue; queue = bindings[`${binding}_${queues.length + 1}`]) queues.push(queue);
  return queues;
}
