import { z } from 'zod';

/** A step of a job, as it travels through the job queue. Small by design: everything else is in D1 and R2. */
const jobMessageSchema = z.discriminatedUnion('step', [
  z.object({ step: z.literal('ingest'), jobId: z.string() }),
  z.object({ step: z.literal('shard'), jobId: z.string(), shard: z.number().int().nonnegative() }),
  z.object({ step: z.literal('assemble'), jobId: z.string() }),
  z.object({ step: z.literal('transcribe'), jobId: z.string() }),
]);
export type JobMessage = z.infer<typeof jobMessageSchema>;

const RETRY_REASONS = [
  'http_timeout',
  'too_many_redirects',
  'connection_failed',
  'ssl_error',
  'http_error',
  'unknown_error',
] as const;
export type RetryReason = (typeof RETRY_REASONS)[number];

/** One delivery of a job's webhook; `attempt` 0 is the first, 1…3 are the retries. */
const webhookMessageSchema = z.object({
  step: z.literal('webhook'),
  jobId: z.string(),
  attempt: z.number().int().min(0).max(3),
  reason: z.enum(RETRY_REASONS).optional(),
});
export type WebhookMessage = z.infer<typeof webhookMessageSchema>;

export const messageSchema = z.union([jobMessageSchema, webhookMessageSchema]);
export type Message = JobMessage | WebhookMessage;

/** Primary key of a message's outbox row: the same step of the same job is one row, however often it is sent. */
export function outboxId(message: Message): string {
  return message.step === 'shard' ? `${message.jobId}/shard/${message.shard}` : `${message.jobId}/${message.step}`;
}

/**
 * `jobs` computes; the other queues wait for external servers: of recordings, transcription engines and webhooks. They
 * do not block each other.
 */
export type QueueName = 'ingest' | 'jobs' | 'transcripts' | 'webhooks';

/** The queue that a message goes into. */
export function queueOf(message: Message): QueueName {
  if (message.step === 'webhook') return 'webhooks';
  if (message.step === 'transcribe') return 'transcripts';
  return message.step === 'ingest' ? 'ingest' : 'jobs';
}

/** The messages of shards `[from, to)`. */
export const shardMessages = (jobId: string, from: number, to: number): Message[] =>
  Array.from({ length: Math.max(0, to - from) }, (_, i) => ({ step: 'shard', jobId, shard: from + i }));
