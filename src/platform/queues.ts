import { type QueueName, queueOf } from '../jobs/messages.ts';
import type { QueuePort } from '../jobs/ports.ts';

/** Sends each message to the queue that its kind belongs to. */
export function createQueues(queues: Record<QueueName, Queue<unknown>>): QueuePort {
  return {
    async send(message, delaySeconds) {
      await queues[queueOf(message)].send(message, { contentType: 'json', delaySeconds });
    },

    async sendAll(messages) {
      const byQueue = new Map<QueueName, MessageSendRequest<unknown>[]>();
      for (const { message, delaySeconds } of messages) {
        const name = queueOf(message);
        byQueue.set(name, [...(byQueue.get(name) ?? []), { body: message, contentType: 'json', delaySeconds }]);
      }
      for (const [name, requests] of byQueue) await queues[name].sendBatch(requests);
    },
  };
}
