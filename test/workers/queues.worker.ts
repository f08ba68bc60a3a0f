interface Env {
  readonly INGEST: Queue<unknown>;
  readonly JOBS: Queue<unknown>;
  readonly PRIORITY: Queue<unknown>;
  readonly TRANSCRIPTS: Queue<unknown>;
  readonly WEBHOOKS: Queue<unknown>;
}

/** All deliveries in order. */
const deliveries: [queue: string, body: unknown, attempt: number][] = [];

/** A consumer that retries every message except `done` and dead letters. */
export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    if (request.method === 'POST') {
      const body = await request.text();
      for (const queue of [env.INGEST, env.JOBS, env.PRIORITY, env.TRANSCRIPTS, env.WEBHOOKS])
        await queue.send(body, { contentType: 'json' });
    }
    return Response.json(deliveries);
  },

  async queue(batch: MessageBatch<unknown>): Promise<void> {
    for (const message of batch.messages) {
      deliveries.push([batch.queue, message.body, message.attempts]);
      if (batch.queue === 'rollcall-dead' || message.body === 'done') message.ack();
      else message.retry({ delaySeconds: 0 });
    }
  },
} satisfies ExportedHandler<Env>;
