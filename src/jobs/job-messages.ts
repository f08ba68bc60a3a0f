import { z } from 'zod';

/** A step of a job, as it travels through the job queue. Small by design: everything else is in D1 and R2. */
const jobMessageSchema = z.discriminatedUnion('step', [
  z.object({ step: z.literal('ingest'), jobId: z.string() }),
  z.object({ step: z.literal('analyse'), jobId: z.string() }),
  z.object({
    step: z.literal('shard'),
    jobId: z.string(),
    shard: z.number().int().nonnegative(),
    /** Of a job of at most `SHORT_SHARDS` shards. */
    isShort: z.boolean().optional(),
  }),
  z.object({ step: z.literal('assemble'), jobId: z.string() }),
  z.object({ step: z.literal('transcribe'), jobId: z.string() }),
]);
export type JobMessage = z.infer<typeof jobMessageSchema>;
export type ShardMessage = Extract<JobMessage, { step: 'shard' }>;
/**
 * The steps of a job as a whole: a job that works has an outbox row for exactly one of them. `analyse` stands for all
 * shards, which the job's object hands out.
 */
export type JobStep = Exclude<JobMessage['step'], 'shard'>;

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

/** A message that has a row in the outbox. */
export type OutboxMessage = Exclude<Message, ShardMessage>;

/** Primary key of a message's outbox row: the same step of the same job is one row, however often it is sent. */
export const outboxId = ({ jobId, step }: Pick<OutboxMessage, 'jobId' | 'step'>): string => `${jobId}/${step}`;

/**
 * `jobs` and `priority` compute, the other queues wait for external servers: of recordings, transcription engines and
 * webhooks. They do not block each other. In `priority` are assemblies and short jobs, which must not wait behind the
 * shards of long ones.
 */
export type QueueName = 'ingest' | 'jobs' | 'priority' | 'transcripts' | 'webhooks';

const QUEUES = {
  ingest: 'ingest',
  analyse: 'priority',
  assemble: 'priority',
  transcribe: 'transcripts',
  webhook: 'webhooks',
} as const satisfies Record<OutboxMessage['step'], QueueName>;

/** Whether a step takes its turn before the shards of long jobs. */
export const isUrgent = (message: Message): boolean => message.step !== 'shard' || message.isShort === true;

/** The queue that a message goes into. */
export function queueOf(message: Message): QueueName {
  if (message.step !== 'shard') return QUEUES[message.step];
  return isUrgent(message) ? 'priority' : 'jobs';
}

/** A step that has begun, and its lease. */
export interface BegunStep {
  /** Starts so far without a known end, this one included. */
  readonly starts: number;
  /** Renews the lease. Resolves to false when the job has ended. */
  renew(): Promise<boolean>;
  /** Schedules another start. @param isForgiven this start does not count against the job */
  putBack(dueAt: number, isForgiven: boolean): Promise<void>;
  /** @param pulse called between units of work of at most a few hundred milliseconds */
  run(pulse: () => Promise<void>): Promise<void>;
}
