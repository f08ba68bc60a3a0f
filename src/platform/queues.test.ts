import { expect, it } from 'vitest';
import type { Message } from '../jobs/job-messages.ts';
import { createQueues, queueSet } from './queues.ts';

/** Bindings that record the messages sent to each of them. */
function bindings(...names: string[]) {
  const sent = new Map<string, Message[]>(names.map((name) => [name, []]));
  const queue = (name: string) => ({
    send: async (message: Message) => void sent.get(name)!.push(message),
    sendBatch: async (requests: readonly { body: Message }[]) =>
      void sent.get(name)!.push(...requests.map(({ body }) => body)),
  });
  return { sent, env: Object.fromEntries(names.map((name) => [name, queue(name)])) };
}

it('spreads jobs over the queues of a kind, but keeps each job in one', async () => {
  const { sent, env } = bindings('INGEST', 'JOBS', 'JOBS_2', 'JOBS_3', 'PRIORITY', 'TRANSCRIPTS', 'WEBHOOKS');
  const queues = createQueues({
    ingest: queueSet(env, 'INGEST'),
    jobs: queueSet(env, 'JOBS'),
    priority: queueSet(env, 'PRIORITY'),
    transcripts: queueSet(env, 'TRANSCRIPTS'),
    webhooks: queueSet(env, 'WEBHOOKS'),
  });
  const jobs = Array.from({ length: 300 }, () => crypto.randomUUID());
  for (const jobId of jobs) {
    await queues.send({ step: 'shard', jobId, shard: 0 }, 0);
    await queues.sendAll(
      [1, 2].map((shard) => ({ message: { step: 'shard', jobId, shard } as const, delaySeconds: 0 })),
    );
    await queues.send({ step: 'assemble', jobId }, 0);
  }
  for (const name of ['JOBS', 'JOBS_2', 'JOBS_3']) {
    const ids = sent.get(name)!.map(({ jobId }) => jobId);
    expect(ids.length).toBe(3 * new Set(ids).size);
    expect(new Set(ids).size).toBeGreaterThan(60);
  }
  expect(sent.get('PRIORITY')).toHaveLength(300);
  expect(sent.get('INGEST')).toEqual([]);
});
